//! What talking to an agent can fail with.

use std::time::Duration;

use reqwest::StatusCode;

use super::remote::RemoteError;
use crate::card::{CardError, SignatureError};

/// Why talking to an agent failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is none.
    #[error("failed to use {url:?} as an agent's address: {reason}")]
    BaseUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A header that HTTP does not allow; its value is not repeated, for it may be secret.
    #[error("failed to use the header {0:?}: its name or value holds characters that HTTP does not allow")]
    Header(String),
    /// The name of the host is not known.
    #[error("failed to find {host}: {reason}; check the name")]
    Dns {
        /// Who was looked for.
        host: String,
        /// Why.
        reason: String,
    },
    /// No connection.
    #[error("failed to connect to {host}: {reason}")]
    Connect {
        /// Where to.
        host: String,
        /// Why.
        reason: String,
    },
    /// No trusted connection.
    #[error(
        "failed to agree on TLS with {host}: {reason}; check its certificate and the trusted authorities"
    )]
    Tls {
        /// Who with.
        host: String,
        /// Why.
        reason: String,
    },
    /// No answer in time.
    #[error("failed to get an answer from {host} within {} s", .after.as_secs_f32())]
    Timeout {
        /// Who was asked.
        host: String,
        /// How long it had.
        after: Duration,
    },
    /// The caller's own deadline passed.
    #[error("failed to finish before the deadline of the call")]
    Deadline,
    /// Nothing on a stream, not even a sign of life.
    #[error("failed to follow the stream: nothing came for {} s", .0.as_secs_f32())]
    Idle(Duration),
    /// The connection broke.
    #[error("failed to read from {host}: {reason}")]
    Broken {
        /// Who was read from.
        host: String,
        /// Why.
        reason: String,
    },
    /// The stream ended before the task did.
    #[error("failed to follow the stream: it ended before the task did")]
    Cut,
    /// An answer, or something of a stream, is too large.
    #[error("failed to read {what}: it is larger than {limit} bytes")]
    TooLarge {
        /// What is.
        what: &'static str,
        /// How large it may be.
        limit: u64,
    },
    /// The server wants credentials, or does not take those that were sent.
    #[error("failed with HTTP status {status} from {host}{}: {excerpt}", wanted(.scheme.as_deref()))]
    Denied {
        /// Who answered.
        host: String,
        /// 401 or 403.
        status: StatusCode,
        /// The scheme that `WWW-Authenticate` asks for, for example `Bearer`.
        scheme: Option<String>,
        /// The beginning of the body.
        excerpt: String,
    },
    /// The server points elsewhere: a token must not go there by itself.
    #[error(
        "failed to follow {host} to {to}: it is another origin; give that address if it is the right one"
    )]
    Redirected {
        /// Who answered.
        host: String,
        /// Where it points to.
        to: String,
    },
    /// The server refused on the level of HTTP.
    #[error("failed with HTTP status {status} from {host}: {excerpt}")]
    Status {
        /// Who answered.
        host: String,
        /// The status.
        status: StatusCode,
        /// The beginning of the body.
        excerpt: String,
        /// How long it asks to wait (`Retry-After`).
        retry_after: Option<Duration>,
    },
    /// The answer is of a kind that no agent gives: most likely it is another server's.
    #[error("failed to understand {host}: it answered with {content_type} instead of JSON: {excerpt}")]
    ContentType {
        /// Who answered.
        host: String,
        /// What it said that the answer is.
        content_type: String,
        /// The beginning of the body.
        excerpt: String,
    },
    /// The answer breaks the protocol.
    #[error("failed to understand the agent: {0}")]
    Protocol(String),
    /// The agent answered with an error.
    #[error("the agent answered with an error: {0}")]
    Remote(RemoteError),
    /// The card cannot be read.
    #[error(transparent)]
    Card(#[from] CardError),
    /// The card is not signed by anybody who is trusted.
    #[error(transparent)]
    Untrusted(#[from] SignatureError),
    /// The card offers nothing that can be used.
    #[error("failed to choose an interface: the card offers {offered}, and JSONRPC of {wanted} is needed")]
    NoInterface {
        /// What the card offers.
        offered: String,
        /// Which versions would do.
        wanted: &'static str,
    },
    /// The version that the agent speaks has no such method.
    #[error(
        "failed to call {method}: JSON-RPC of A2A {version} has no such method, and the agent speaks no other version"
    )]
    NotInVersion {
        /// The method's name in 1.0.
        method: &'static str,
        /// The version in use.
        version: crate::version::ProtocolVersion,
    },
    /// A task cannot be canceled before the agent has said which one it is.
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

    /// Whether it may pass by itself: the same call may go well a little later.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Timeout { .. } | Self::Idle(_) | Self::Broken { .. } | Self::Cut => true,
            Self::Status { status, .. } => status.is_server_error() || status.as_u16() == 429,
            _ => self.is_unreached(),
        }
    }

    /// Whether nothing of the request can have arrived.
    pub const fn is_unreached(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Dns { .. })
    }

    /// Whether the agent may have taken a message that this error was the answer to.
    pub const fn is_ambiguous(&self) -> bool {
        match self {
            Self::Timeout { .. } | Self::Deadline | Self::Idle(_) | Self::Broken { .. } | Self::Cut => true,
            // A proxy that has lost the agent behind it.
            Self::Status { status, .. } => matches!(status.as_u16(), 502 | 504),
            _ => false,
        }
    }

    /// How long the server asks to wait before the next try.
    pub(super) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
