//! Errors of the client.

use std::time::Duration;

use reqwest::StatusCode;

use super::agent_error::RemoteError;
use crate::card::{CardError, SignatureError};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The URL is invalid.
    #[error("failed to use {url:?} as an agent's address: {reason}")]
    BaseUrl { url: String, reason: String },
    /// A header that HTTP does not allow. Omits the value, which may be secret.
    #[error("failed to use the header {0:?}: its name or value holds characters that HTTP does not allow")]
    Header(String),
    /// The host name cannot be resolved.
    #[error("failed to find {host}: {reason}; check the name")]
    Dns { host: String, reason: String },
    /// The connection failed.
    #[error("failed to connect to {host}: {reason}")]
    Connect { host: String, reason: String },
    /// The TLS handshake failed.
    #[error(
        "failed to agree on TLS with {host}: {reason}; check its certificate and the trusted authorities"
    )]
    Tls { host: String, reason: String },
    /// No response in time.
    #[error("failed to get an answer from {host} within {} s", .after.as_secs_f32())]
    Timeout {
        host: String,
        /// The time limit.
        after: Duration,
    },
    /// The caller's own deadline passed.
    #[error("failed to finish before the deadline of the call")]
    Deadline,
    /// The stream was silent for too long.
    #[error("failed to follow the stream: nothing came for {} s", .0.as_secs_f32())]
    Idle(Duration),
    /// The connection broke.
    #[error("failed to read from {host}: {reason}")]
    Broken { host: String, reason: String },
    /// The stream ended before the task did.
    #[error("failed to follow the stream: it ended before the task did")]
    Cut,
    /// A response, or a part of a stream, is too large.
    #[error("failed to read {what}: it is larger than {limit} bytes")]
    TooLarge {
        /// The part.
        what: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
    /// The server rejected the credentials, or they are missing.
    #[error("failed with HTTP status {status} from {host}{}: {excerpt}", wanted(.scheme.as_deref()))]
    Denied {
        host: String,
        /// 401 or 403.
        status: StatusCode,
        /// The scheme that `WWW-Authenticate` asks for, for example `Bearer`.
        scheme: Option<String>,
        /// The beginning of the body.
        excerpt: String,
    },
    /// The server redirects to another origin, which must not receive the token.
    #[error(
        "failed to follow {host} to {to}: it is another origin; give that address if it is the right one"
    )]
    Redirected {
        host: String,
        /// The origin.
        to: String,
    },
    /// The server responded with an HTTP error.
    #[error("failed with HTTP status {status} from {host}: {excerpt}")]
    Status {
        host: String,
        status: StatusCode,
        /// The beginning of the body.
        excerpt: String,
        retry_after: Option<Duration>,
    },
    /// The response has another content type: most likely the server is no agent.
    #[error("failed to understand {host}: it answered with {content_type} instead of JSON: {excerpt}")]
    ContentType {
        host: String,
        content_type: String,
        /// The beginning of the body.
        excerpt: String,
    },
    /// The response violates the protocol.
    #[error("failed to understand the agent: {0}")]
    Protocol(String),
    /// The agent responded with an error.
    #[error("the agent answered with an error: {0}")]
    Remote(RemoteError),
    /// The card cannot be read.
    #[error(transparent)]
    Card(#[from] CardError),
    /// The card has no trusted signature.
    #[error(transparent)]
    Untrusted(#[from] SignatureError),
    /// The card has no usable interface.
    #[error("failed to choose an interface: the card offers {offered}, and JSONRPC of {wanted} is needed")]
    NoInterface {
        /// The interfaces of the card.
        offered: String,
        /// The usable versions.
        wanted: &'static str,
    },
    /// The agent's version has no such method.
    #[error(
        "failed to call {method}: JSON-RPC of A2A {version} has no such method, and the agent speaks no other version"
    )]
    NotInVersion {
        /// The method's name in 1.0.
        method: &'static str,
        /// The version in use.
        version: crate::version::ProtocolVersion,
    },
    /// The agent has not named the task yet.
    #[error("failed to cancel the task: the agent has not said yet which one it is")]
    NoTask,
}

fn wanted(scheme: Option<&str>) -> String {
    scheme.map(|scheme| format!(", which wants {scheme} credentials")).unwrap_or_default()
}

impl ClientError {
    /// A bounded name, for metrics.
    pub const fn category(&self) -> &'static str {
        match self {
            Self::BaseUrl { .. } => "base_url",
            Self::Header(_) => "header",
            Self::Dns { .. } => "dns",
            Self::Connect { .. } => "connect",
            Self::Tls { .. } => "tls",
            Self::Timeout { .. } => "timeout",
            Self::Deadline => "deadline",
            Self::Idle(_) => "idle",
            Self::Broken { .. } => "broken",
            Self::Cut => "cut",
            Self::TooLarge { .. } => "too_large",
            Self::Denied { .. } => "denied",
            Self::Redirected { .. } => "redirected",
            Self::Status { .. } => "status",
            Self::ContentType { .. } => "content_type",
            Self::Protocol(_) => "protocol",
            Self::Remote(_) => "remote",
            Self::Card(_) => "card",
            Self::Untrusted(_) => "untrusted",
            Self::NoInterface { .. } => "no_interface",
            Self::NotInVersion { .. } => "not_in_version",
            Self::NoTask => "no_task",
        }
    }

    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Timeout { .. } | Self::Idle(_) | Self::Broken { .. } | Self::Cut => true,
            Self::Status { status, .. } => status.is_server_error() || status.as_u16() == 429,
            _ => self.is_unaccepted(),
        }
    }

    /// Whether the agent cannot have acted on the request: there was no connection, or the server refused it for now, with
    /// status 503 and `Retry-After`.
    pub fn is_unaccepted(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Dns { .. } => true,
            Self::Status { status, retry_after, .. } => {
                *status == StatusCode::SERVICE_UNAVAILABLE && retry_after.is_some()
            }
            _ => false,
        }
    }

    /// Whether the agent may have received the message although the call failed.
    pub const fn is_ambiguous(&self) -> bool {
        match self {
            Self::Timeout { .. } | Self::Deadline | Self::Idle(_) | Self::Broken { .. } | Self::Cut => true,
            // A proxy lost the connection to the agent.
            Self::Status { status, .. } => matches!(status.as_u16(), 502 | 504),
            _ => false,
        }
    }

    /// The wait that the server asks for.
    pub(super) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
