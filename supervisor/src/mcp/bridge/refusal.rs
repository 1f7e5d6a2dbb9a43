//! The error responses of the bridge.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// The code of a message that is none (JSON-RPC 2.0, section 5.1).
const INVALID_REQUEST: i64 = -32600;
/// The code of a text that is not JSON (same section).
const PARSE_ERROR: i64 = -32700;
/// The code of headers that say something else than the body (protocol 2026-07-28).
const HEADER_MISMATCH: i64 = -32020;
/// The code by which the official SDKs tell of a closed connection.
pub(super) const CLOSED: i64 = -32000;

/// A refusal: an HTTP status, and a JSON-RPC error in the body.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    code: i64,
    message: String,
    id: Value,
}

impl Refusal {
    fn new(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), id: Value::Null }
    }

    /// The text is not JSON.
    pub(super) fn unreadable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, PARSE_ERROR, message)
    }

    /// The request is not one that the protocol knows.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, message)
    }

    /// A header contradicts the body.
    pub(super) fn mismatch(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, HEADER_MISMATCH, message)
    }

    /// The client's way to ask, or to be answered, is not one that is spoken here.
    pub(super) fn medium(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, INVALID_REQUEST, message)
    }

    /// The session is over, or never was; a client begins a new one.
    pub(super) fn no_session() -> Self {
        let message = "no such session: it ended, or the tool server did; begin a new one with initialize";
        Self::new(StatusCode::NOT_FOUND, CLOSED, message)
    }

    /// The tool server cannot answer now.
    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, CLOSED, message)
    }

    /// Why.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The same, of this request.
    pub(super) fn of(mut self, id: &Value) -> Self {
        self.id = id.clone();
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let error = json!({"code": self.code, "message": self.message});
        (self.status, Json(json!({"jsonrpc": "2.0", "id": self.id, "error": error}))).into_response()
    }
}
