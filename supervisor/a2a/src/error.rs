//! Errors of operations and their wire forms (1.0, section 5.4; JSON-RPC 2.0).

use std::fmt;

use serde_json::{Value, json};

use crate::model::TaskState;
use crate::version::ProtocolVersion;

/// An error of a request. Peers see the text, so it must not contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum A2aError {
    /// The task does not exist, or the caller has no access to it.
    #[error("task not found: {0}")]
    TaskNotFound(String),
    /// The task has ended already.
    #[error("task {id} cannot be canceled: it is {state}")]
    TaskNotCancelable {
        /// The task.
        id: String,
        state: TaskState,
    },
    /// Push notifications are not offered.
    #[error("push notifications are not supported; read the card's capabilities")]
    PushNotificationNotSupported,
    /// The operation is not offered, or not for this task.
    #[error("unsupported operation: {0}")]
    UnsupportedOperation(String),
    /// A media type that the agent does not accept.
    #[error("content type not supported: {0}")]
    ContentTypeNotSupported(String),
    /// The agent's response violates the protocol.
    #[error("invalid agent response: {0}")]
    InvalidAgentResponse(String),
    /// There is no extended card.
    #[error("the extended agent card is not configured")]
    ExtendedAgentCardNotConfigured,
    /// The client must declare an extension.
    #[error("extension support required: {0}")]
    ExtensionSupportRequired(String),
    /// The `A2A-Version` of the request does not fit its method or path.
    #[error("this is a request of A2A {expected}, but {}; send A2A-Version: {expected}", found_version(.requested))]
    VersionNotSupported {
        /// The value of `A2A-Version`, empty if it is missing.
        requested: String,
        /// The version of the method or path.
        expected: ProtocolVersion,
    },
    /// The body is not JSON.
    #[error("failed to parse the request: {0}")]
    Parse(String),
    /// The body is JSON but no JSON-RPC request.
    #[error("invalid request: {0}")]
    InvalidRequest(String),
    /// No such method.
    #[error("method not found: {0}")]
    MethodNotFound(String),
    /// The parameters are wrong.
    #[error("invalid params: {}", joined(.0))]
    InvalidParams(Vec<Violation>),
    /// Something failed on this side.
    #[error("internal error: {0}")]
    Internal(String),
}

/// A member of the parameters that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The path, for example `message.parts[0]`.
    pub field: String,
    /// The fault.
    pub description: String,
}

impl Violation {
    /// A fault of one member.
    pub fn new(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self { field: field.into(), description: description.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.description),
            field => write!(f, "{field}: {}", self.description),
        }
    }
}

fn joined(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn found_version(requested: &str) -> String {
    if requested.is_empty() {
        "A2A-Version is missing".to_owned()
    } else {
        format!("A2A-Version is {requested:?}")
    }
}

impl A2aError {
    /// Parameters with one fault.
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::InvalidParams(vec![Violation::new(field, description)])
    }

    /// The JSON-RPC code in a version. 0.3 does not know -32008 and -32009.
    pub const fn code(&self, version: ProtocolVersion) -> i64 {
        match self {
            Self::TaskNotFound(_) => -32001,
            Self::TaskNotCancelable { .. } => -32002,
            Self::PushNotificationNotSupported => -32003,
            Self::UnsupportedOperation(_) => -32004,
            Self::ContentTypeNotSupported(_) => -32005,
            Self::InvalidAgentResponse(_) => -32006,
            Self::ExtendedAgentCardNotConfigured => -32007,
            Self::ExtensionSupportRequired(_) | Self::VersionNotSupported { .. }
                if matches!(version, ProtocolVersion::V0_3) =>
            {
                -32603
            }
            Self::ExtensionSupportRequired(_) => -32008,
            Self::VersionNotSupported { .. } => -32009,
            Self::Parse(_) => -32700,
            Self::InvalidRequest(_) => -32600,
            Self::MethodNotFound(_) => -32601,
            Self::InvalidParams(_) => -32602,
            Self::Internal(_) => -32603,
        }
    }

    /// A bounded name, for metrics and for the `reason` of 1.0's error details.
    pub const fn category(&self) -> &'static str {
        match self {
            Self::TaskNotFound(_) => "TASK_NOT_FOUND",
            Self::TaskNotCancelable { .. } => "TASK_NOT_CANCELABLE",
            Self::PushNotificationNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::UnsupportedOperation(_) => "UNSUPPORTED_OPERATION",
            Self::ContentTypeNotSupported(_) => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::InvalidAgentResponse(_) => "INVALID_AGENT_RESPONSE",
            Self::ExtendedAgentCardNotConfigured => "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            Self::ExtensionSupportRequired(_) => "EXTENSION_SUPPORT_REQUIRED",
            Self::VersionNotSupported { .. } => "VERSION_NOT_SUPPORTED",
            Self::Parse(_) => "PARSE_ERROR",
            Self::InvalidRequest(_) => "INVALID_REQUEST",
            Self::MethodNotFound(_) => "METHOD_NOT_FOUND",
            Self::InvalidParams(_) => "INVALID_PARAMS",
            Self::Internal(_) => "INTERNAL",
        }
    }

    /// The members `code`, `message` and `data` of a JSON-RPC error. 1.0 has structured details in `data`;
    /// in 0.3 the member is free and left out.
    pub fn to_json(&self, version: ProtocolVersion) -> Value {
        let mut error = json!({"code": self.code(version), "message": self.to_string()});
        if version == ProtocolVersion::V1_0 {
            error["data"] = Value::Array(self.details());
        }
        error
    }

    /// The structured details of 1.0.
    pub(crate) fn details(&self) -> Vec<Value> {
        let mut details = vec![json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.category(),
            "domain": "a2a-protocol.org",
            "metadata": self.metadata(),
        })];
        if let Self::InvalidParams(violations) = self {
            let fields = violations.iter().map(|v| json!({"field": v.field, "description": v.description}));
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": fields.collect::<Vec<_>>(),
            }));
        }
        details
    }

    fn metadata(&self) -> Value {
        match self {
            Self::TaskNotFound(id) => json!({"taskId": id}),
            Self::TaskNotCancelable { id, state } => json!({"taskId": id, "state": state}),
            Self::VersionNotSupported { requested, .. } => {
                json!({"requested": requested, "supported": "0.3, 1.0"})
            }
            _ => json!({}),
        }
    }
}
