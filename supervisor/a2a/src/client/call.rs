//! The options of a call.

use std::fmt;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use super::error::ClientError;
use super::transport::TimeLeft;

/// The options of a call; see [`A2aClient::with`](super::A2aClient::with).
#[derive(Clone, Default)]
pub struct CallOptions {
    deadline: Option<Instant>,
    headers: HeaderMap,
    extensions: Vec<String>,
}

impl CallOptions {
    /// The deadline of a response, or of a stream with all its reconnects, which otherwise ends with
    /// [`ClientError::Deadline`]. An earlier deadline stays.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(self.deadline.map_or(deadline, |set| set.min(deadline)));
        self
    }

    /// A deadline after this time.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        match Instant::now().checked_add(time) {
            Some(deadline) => self.deadline(deadline),
            None => self,
        }
    }

    /// Headers for every request of the call, for example `traceparent` and `tracestate` (W3C Trace Context). Headers of
    /// the protocol take precedence.
    #[must_use]
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// One more header.
    ///
    /// # Errors
    /// [`ClientError::Header`] for a name or a value that HTTP does not allow.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, ClientError> {
        let fault = || ClientError::Header(name.escape_default().to_string());
        let name: HeaderName = name.parse().map_err(|_| fault())?;
        let value = HeaderValue::from_str(value).map_err(|_| fault())?;
        self.headers.insert(name, value);
        Ok(self)
    }

    /// The URI of one more extension to declare, besides those of the client.
    #[must_use]
    pub fn extension(mut self, uri: impl Into<String>) -> Self {
        self.extensions.push(uri.into());
        self
    }

    pub(super) const fn header_map(&self) -> &HeaderMap {
        &self.headers
    }

    pub(super) fn extension_uris(&self) -> &[String] {
        &self.extensions
    }

    pub(super) const fn until(&self) -> Option<Instant> {
        self.deadline
    }

    /// The same call without its deadline, for cleanup.
    pub(super) fn open_ended(&self) -> Self {
        Self { deadline: None, ..self.clone() }
    }

    /// The time left for something with a limit of its own.
    ///
    /// # Errors
    /// [`ClientError::Deadline`] if no time is left.
    pub(super) fn time_left(&self, limit: Duration) -> Result<TimeLeft, ClientError> {
        let Some(deadline) = self.deadline else { return Ok(TimeLeft::of(limit)) };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ClientError::Deadline);
        }
        Ok(TimeLeft { time: left.min(limit), is_deadline: left <= limit })
    }
}

/// Header values may be secret.
impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("deadline", &self.deadline)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("extensions", &self.extensions)
            .finish()
    }
}
