//! What can go wrong with a server.

use std::time::Duration;

use caipe_bridge::process::SpawnError;
use thiserror::Error;

use super::template::TemplateError;

/// A declaration that cannot be used. Trying again does not help; another environment or another file does.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("failed to fill in {field}: {reason}")]
pub struct SpecError {
    /// Which member, as `env.NAME`, `headers.NAME`, `args`, …
    pub field: String,
    /// Why.
    pub reason: TemplateError,
}

/// A server that did not get as far as its list of tools.
///
/// The texts are for people who run the program: they hold no secret, because the output of the server is redacted first.
#[derive(Debug, Error)]
pub(super) enum StartError {
    /// The declaration cannot be used.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The program does not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A header or URL that HTTP does not allow.
    #[error("failed to use {field}: not a valid {what}")]
    InvalidHttp {
        /// Which member.
        field: String,
        /// What it should have been.
        what: &'static str,
    },
    /// It did not answer in time.
    #[error("failed to get an answer within {deadline:?}{hint}")]
    Deadline {
        /// How long it had.
        deadline: Duration,
        /// What is known beyond that.
        hint: String,
    },
    /// It ended before it was ready.
    #[error("the server ended before it was ready{hint}")]
    Ended {
        /// What is known beyond that.
        hint: String,
    },
    /// It answered something that is not the protocol, or refused us.
    #[error("failed to agree with the server on a protocol: {reason}{hint}")]
    Handshake {
        /// What it said.
        reason: String,
        /// What is known beyond that.
        hint: String,
    },
    /// We are shutting down.
    #[error("the supervisor is shutting down")]
    Shutdown,
    /// Its list of tools cannot be had.
    #[error(transparent)]
    List(#[from] ListError),
}

/// A list of tools that cannot be had.
#[derive(Debug, Error)]
pub(super) enum ListError {
    /// The server refused, or the connection broke.
    #[error("failed to list the tools: {0}")]
    Refused(String),
    /// The connection closed meanwhile.
    #[error("failed to list the tools: the connection closed")]
    Lost,
    /// The server sends page after page.
    #[error("failed to list the tools: more than {0} pages, or the same page again")]
    Endless(usize),
}

impl StartError {
    /// Whether trying again may help.
    pub(super) fn is_transient(&self) -> bool {
        !matches!(self, Self::Spec(_) | Self::InvalidHttp { .. })
    }

    /// A bounded name for logs and metric labels.
    pub(super) const fn category(&self) -> &'static str {
        match self {
            Self::Spec(_) | Self::InvalidHttp { .. } => "spec",
            Self::Spawn(_) => "spawn",
            Self::Deadline { .. } => "deadline",
            Self::Ended { .. } => "ended",
            Self::Handshake { .. } => "handshake",
            Self::Shutdown => "shutdown",
            Self::List(_) => "list",
        }
    }
}
