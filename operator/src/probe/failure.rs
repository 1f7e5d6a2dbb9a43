//! Failures of probes. The messages are stable while the cause is, and repeat nothing from the pod.

use caipe_a2a::client::ClientError;
use http::StatusCode;

use crate::metrics::labels::ProbeOutcome;

/// A failed probe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The label of the metric.
    pub outcome: ProbeOutcome,
    /// The message for users; the same for the same cause.
    pub message: String,
}

impl Failure {
    pub(super) fn new(outcome: ProbeOutcome, message: impl Into<String>) -> Self {
        Self { outcome, message: message.into() }
    }

    pub(super) fn timeout() -> Self {
        Self::new(ProbeOutcome::Timeout, "failed to get an answer from the pod in time")
    }
}

pub(super) fn accepted(status: StatusCode) -> Result<(), Failure> {
    let outcome = match status {
        _ if status.is_success() => return Ok(()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ProbeOutcome::Denied,
        _ if status.is_redirection() => ProbeOutcome::Redirected,
        _ => ProbeOutcome::Status,
    };
    Err(Failure::new(outcome, refused(outcome, status)))
}

/// The pod's response is not repeated, because the message becomes part of a status.
fn refused(outcome: ProbeOutcome, status: StatusCode) -> String {
    let number = status.as_u16();
    match outcome {
        ProbeOutcome::Denied => {
            format!("failed to authenticate to the pod: it answered with HTTP status {number}")
        }
        ProbeOutcome::Redirected => format!(
            "failed to get an answer from the pod: it redirects (HTTP status {number}), which is not followed"
        ),
        _ => format!("failed to get an answer from the pod: HTTP status {number}"),
    }
}

/// Without the address and the system's message, which add nothing for users.
pub(super) fn unconnected() -> Failure {
    Failure::new(ProbeOutcome::Connect, "failed to connect to the pod")
}

pub(super) fn broken() -> Failure {
    Failure::new(ProbeOutcome::Broken, "failed to read the pod's answer: the connection broke")
}

pub(super) fn too_large(limit: usize) -> Failure {
    let message = format!("failed to read the pod's answer: it is larger than {limit} bytes");
    Failure::new(ProbeOutcome::TooLarge, message)
}

pub(super) fn of_client(error: &ClientError, limit: usize) -> Failure {
    match error {
        ClientError::Timeout { .. } | ClientError::Deadline | ClientError::Idle(_) => Failure::timeout(),
        ClientError::Connect { .. } | ClientError::Dns { .. } | ClientError::Tls { .. } => unconnected(),
        ClientError::TooLarge { .. } => too_large(limit),
        ClientError::Denied { status, .. } => {
            Failure::new(ProbeOutcome::Denied, refused(ProbeOutcome::Denied, *status))
        }
        ClientError::Status { status, .. } => accepted(*status).err().unwrap_or_else(Failure::timeout),
        ClientError::Redirected { .. } => Failure::new(
            ProbeOutcome::Redirected,
            "failed to get an answer from the pod: it redirects, which is not followed",
        ),
        ClientError::Broken { .. } | ClientError::Cut => broken(),
        _ => Failure::new(ProbeOutcome::Malformed, misunderstood(error)),
    }
}

/// Without text from the pod, which may be anything.
const fn misunderstood(error: &ClientError) -> &'static str {
    match error {
        ClientError::ContentType { .. } => "failed to understand the pod's card: it is no JSON",
        ClientError::NoInterface { .. } => {
            "failed to understand the pod's card: it offers no JSON-RPC of A2A 1.0 or 0.3"
        }
        ClientError::Remote(_) => "failed to get the pod's card: it answered with an error",
        _ => "failed to understand the pod's card: it is no agent card",
    }
}
