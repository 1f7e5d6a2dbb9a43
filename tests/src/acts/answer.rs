//! What a step got.

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::failure::Failure;

/// What a step got, whatever the binding.
#[derive(Debug, Clone)]
pub enum Answer {
    /// One document.
    Plain {
        /// The HTTP status.
        status: u16,
        /// The HTTP headers.
        headers: HeaderMap,
        /// What patterns look at: the result of an operation, the whole body of a raw step.
        root: Value,
    },
    /// Server-sent events, read to the end.
    Stream {
        /// The HTTP status.
        status: u16,
        /// The HTTP headers.
        headers: HeaderMap,
        /// One document each: the results of an operation, the whole data of a raw step.
        events: Vec<Value>,
    },
    /// An operation that failed.
    Failed(Failure),
}

impl Answer {
    /// What patterns look at.
    pub fn root(&self) -> Value {
        match self {
            Self::Plain { root, .. } => root.clone(),
            Self::Stream { events, .. } => Value::Array(events.clone()),
            Self::Failed(failure) => failure.root(),
        }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::Plain { status, .. } | Self::Stream { status, .. } => *status,
            Self::Failed(failure) => failure.status,
        }
    }

    /// An HTTP header of a success.
    pub fn header(&self, name: &str) -> Option<&str> {
        match self {
            Self::Plain { headers, .. } | Self::Stream { headers, .. } => headers.get(name)?.to_str().ok(),
            Self::Failed(_) => None,
        }
    }
}
