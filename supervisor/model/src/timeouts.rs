//! The deadlines of a model call.

use std::time::Duration;

/// How long one call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The whole call, from the request to the last byte (`LLM_TIMEOUT_SECONDS`, `limits.modelTimeoutSeconds`).
    pub total: Duration,
    /// Until the headers of the response (`LLM_CONNECT_TIMEOUT_SECONDS`).
    pub headers: Duration,
    /// Between two pieces of the answer (`LLM_IDLE_TIMEOUT_SECONDS`).
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { total: Duration::from_mins(10), headers: Duration::from_mins(2), idle: Duration::from_mins(2) }
    }
}
