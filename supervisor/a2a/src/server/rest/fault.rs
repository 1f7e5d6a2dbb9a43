//! Failures in the binding's form (1.0.1, sections 5.4 and 11.6). Pure.

use axum::http::StatusCode;
use bytes::Bytes;
use serde_json::{Value, json};

use super::path::PathError;
use crate::error::A2aError;
use crate::version::ProtocolVersion;

/// A failure with its HTTP status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct Fault {
    pub(super) status: StatusCode,
    pub(super) error: A2aError,
    /// The allowed methods.
    pub(super) allow: Option<&'static str>,
}

impl Fault {
    /// A failure with a status of its own, before the operation is known.
    pub(super) const fn at(status: StatusCode, error: A2aError) -> Self {
        Self { status, error, allow: None }
    }

    /// A request line without an operation.
    pub(super) fn missed(miss: &PathError, method: &str, path: &str) -> Self {
        let path: String = path.chars().take(80).collect();
        match miss {
            PathError::Path => A2aError::MethodNotFound(format!("{method} {path}")).into(),
            PathError::Encoding => A2aError::invalid("path", "an id is not UTF-8 once decoded").into(),
            PathError::Verb(allow) => {
                let error = A2aError::MethodNotFound(format!("{method} {path}; the path takes {allow}"));
                Self { status: StatusCode::METHOD_NOT_ALLOWED, error, allow: Some(*allow) }
            }
        }
    }

    pub(in crate::server) fn body(&self, version: ProtocolVersion) -> Value {
        let (code, message) = (self.status.as_u16(), self.error.to_string());
        match version {
            ProtocolVersion::V1_0 => {
                json!({"error": {"code": code, "status": self.name(), "message": message,
                "details": self.error.details()}})
            }
            // Free in 0.3. The JS client reads `code`, Python's client of 1.3 reads `type`.
            ProtocolVersion::V0_3 => {
                json!({"code": self.error.code(version), "type": old_name(&self.error), "message": message})
            }
        }
    }

    /// The canonical name of `google.rpc.Code`.
    const fn name(&self) -> &'static str {
        match self.status {
            StatusCode::METHOD_NOT_ALLOWED => "UNIMPLEMENTED",
            StatusCode::PAYLOAD_TOO_LARGE => "RESOURCE_EXHAUSTED",
            StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
            StatusCode::REQUEST_TIMEOUT => "DEADLINE_EXCEEDED",
            _ => status(&self.error).1,
        }
    }
}

impl From<A2aError> for Fault {
    fn from(error: A2aError) -> Self {
        Self::at(status(&error).0, error)
    }
}

/// The table of 1.0.1, section 5.4, and the codes of `google.rpc` for errors of JSON-RPC.
const fn status(error: &A2aError) -> (StatusCode, &'static str) {
    match error {
        A2aError::TaskNotFound(_) | A2aError::MethodNotFound(_) => (StatusCode::NOT_FOUND, "NOT_FOUND"),
        A2aError::TaskNotCancelable { .. }
        | A2aError::PushNotificationNotSupported
        | A2aError::UnsupportedOperation(_)
        | A2aError::ExtendedAgentCardNotConfigured
        | A2aError::ExtensionSupportRequired(_)
        | A2aError::VersionNotSupported { .. } => (StatusCode::BAD_REQUEST, "FAILED_PRECONDITION"),
        A2aError::ContentTypeNotSupported(_)
        | A2aError::Parse(_)
        | A2aError::InvalidRequest(_)
        | A2aError::InvalidParams(_) => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT"),
        A2aError::InvalidAgentResponse(_) | A2aError::Internal(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL")
        }
    }
}

/// The error's name in the official SDKs.
const fn old_name(error: &A2aError) -> &'static str {
    match error {
        A2aError::TaskNotFound(_) => "TaskNotFoundError",
        A2aError::TaskNotCancelable { .. } => "TaskNotCancelableError",
        A2aError::PushNotificationNotSupported => "PushNotificationNotSupportedError",
        A2aError::UnsupportedOperation(_) => "UnsupportedOperationError",
        A2aError::ContentTypeNotSupported(_) => "ContentTypeNotSupportedError",
        A2aError::InvalidAgentResponse(_) => "InvalidAgentResponseError",
        A2aError::ExtendedAgentCardNotConfigured => "ExtendedAgentCardNotConfiguredError",
        A2aError::ExtensionSupportRequired(_) => "ExtensionSupportRequiredError",
        A2aError::VersionNotSupported { .. } => "VersionNotSupportedError",
        A2aError::Parse(_) => "JSONParseError",
        A2aError::InvalidRequest(_) => "InvalidRequestError",
        A2aError::MethodNotFound(_) => "MethodNotFoundError",
        A2aError::InvalidParams(_) => "InvalidParamsError",
        A2aError::Internal(_) => "InternalError",
    }
}

/// The body of an error response.
pub(in crate::server) fn failure(error: &A2aError, version: ProtocolVersion) -> Bytes {
    Bytes::from(Fault::from(error.clone()).body(version).to_string())
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
