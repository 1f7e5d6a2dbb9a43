//! The errors of the declaration and the start of a server.

use std::time::Duration;

use caipe_bridge::process::SpawnError;
use thiserror::Error;

use super::template::TemplateError;

/// A declaration that cannot be used. A retry does not help.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("failed to fill in {field}: {reason}")]
pub struct SpecError {
    /// The member, such as `env.NAME`, `headers.NAME`, `args`.
    pub field: String,
    /// The fault of the template.
    pub reason: TemplateError,
}

/// A server that did not return its list of tools. The texts contain no secrets: the output of the server is redacted first.
#[derive(Debug, Error)]
pub(super) enum StartError {
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A header or URL is not valid in HTTP.
    #[error("failed to use {field}: not a valid {what}")]
    InvalidHttp {
        field: String,
        /// The expected form.
        what: &'static str,
    },
    #[error("failed to get an answer within {deadline:?}{hint}")]
    Deadline { deadline: Duration, hint: String },
    #[error("the server ended before it was ready{hint}")]
    Ended { hint: String },
    /// The server rejected the handshake or returned an invalid answer.
    #[error("failed to agree with the server on a protocol: {reason}{hint}")]
    Handshake { reason: String, hint: String },
    #[error("the supervisor is shutting down")]
    Shutdown,
    #[error(transparent)]
    List(#[from] ListError),
}

/// The server did not return its list of tools.
#[derive(Debug, Error)]
pub(super) enum ListError {
    /// The server returned an error.
    #[error("failed to list the tools: {0}")]
    Refused(String),
    #[error("failed to list the tools: the connection closed")]
    Lost,
    #[error("failed to list the tools: more than {0} pages, or the same page again")]
    Endless(usize),
}

impl StartError {
    /// Whether a retry may help.
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
