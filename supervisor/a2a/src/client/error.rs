//! What talking to an agent can fail with.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use crate::card::CardError;

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
    /// An answer or event is too large.
    #[error("failed to read an answer: it is larger than {0} bytes")]
    TooLarge(usize),
    /// The server refused on the level of HTTP.
    #[error("failed with HTTP status {status} from {host}: {excerpt}")]
    Status {
        /// Who answered.
        host: String,
        /// The status.
        status: StatusCode,
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
    /// The card offers nothing that can be used.
    #[error("failed to choose an interface: the card offers {offered}, and JSONRPC of {wanted} is needed")]
    NoInterface {
        /// What the card offers.
        offered: String,
        /// Which versions would do.
        wanted: &'static str,
    },
}

impl ClientError {
    /// A bounded name, for metrics.
    pub const fn category(&self) -> &'static str {
        match self {
            Self::BaseUrl { .. } => "base_url",
            Self::Connect { .. } => "connect",
            Self::Tls { .. } => "tls",
            Self::Timeout { .. } => "timeout",
            Self::Idle(_) => "idle",
            Self::Broken { .. } => "broken",
            Self::Cut => "cut",
            Self::TooLarge(_) => "too_large",
            Self::Status { .. } => "status",
            Self::Protocol(_) => "protocol",
            Self::Remote(_) => "remote",
            Self::Card(_) => "card",
            Self::NoInterface { .. } => "no_interface",
        }
    }

    /// Sorts a failure of the HTTP client. The address is left out: it may hold credentials.
    pub(super) fn transport(error: reqwest::Error, host: &str, deadline: Duration) -> Self {
        let error = error.without_url();
        let host = host.to_owned();
        if error.is_timeout() {
            return Self::Timeout { host, after: deadline };
        }
        let reason = chain(&error);
        match (is_tls(&error), error.is_connect()) {
            (true, _) => Self::Tls { host, reason },
            (false, true) => Self::Connect { host, reason },
            (false, false) => Self::Broken { host, reason },
        }
    }
}

/// The error of a JSON-RPC answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RemoteError {
    /// The code.
    pub code: i64,
    /// What the agent says about it.
    #[serde(default)]
    pub message: String,
    /// Details; an array of objects in 1.0, anything in 0.3.
    #[serde(default)]
    pub data: Option<Value>,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

/// An error and its causes in one line; the outermost says least.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// An I/O error does not count what it wraps among its causes.
fn is_tls(error: &(dyn StdError + 'static)) -> bool {
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>()
        || wrapped.is_some_and(|wrapped| is_tls(wrapped))
        || error.source().is_some_and(is_tls)
}
