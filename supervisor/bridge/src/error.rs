//! The error responses of the bridge.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// JSON-RPC 2.0, section 5.1: not a valid request object.
const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC 2.0, section 5.1: not JSON.
const PARSE_ERROR: i64 = -32700;
/// The code of headers that contradict the body (protocol 2026-07-28).
const HEADER_MISMATCH: i64 = -32020;
/// The code with which the official SDKs report a closed connection.
pub(crate) const CLOSED: i64 = -32000;

/// An error response: an HTTP status, and a JSON-RPC error in the body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BridgeError {
    status: StatusCode,
    code: i64,
    message: String,
    id: Value,
}

impl BridgeError {
    fn new(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), id: Value::Null }
    }

    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, PARSE_ERROR, message)
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, message)
    }

    pub(crate) fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, HEADER_MISMATCH, message)
    }

    /// The method or a media type of the HTTP request is not supported.
    pub(crate) fn unsupported(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, INVALID_REQUEST, message)
    }

    pub(crate) fn no_session() -> Self {
        let message = "no such session: it ended, or the tool server did; begin a new one with initialize";
        Self::new(StatusCode::NOT_FOUND, CLOSED, message)
    }

    /// The tool server cannot answer now.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, CLOSED, message)
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The same error as the answer to this request.
    pub(crate) fn for_request(mut self, id: &Value) -> Self {
        self.id = id.clone();
        self
    }
}

impl IntoResponse for BridgeError {
    fn into_response(self) -> Response {
        let error = json!({"code": self.code, "message": self.message});
        (self.status, Json(json!({"jsonrpc": "2.0", "id": self.id, "error": error}))).into_response()
    }
}
