//! HTTP requests and responses.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{ClientBuilder, Response, StatusCode, redirect};
use url::Url;

use super::error::ClientError;
use super::response::{excerpt, excerpt_of, result};
use super::transport::{TimeLeft, transport_error};

/// Most redirects that are followed within an origin.
const REDIRECTS: usize = 5;
/// Time limit of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest wait that a server can ask for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(5);

/// An HTTP client for an [`A2aClient`](super::A2aClient). It follows redirects within an origin only, so that no token or
/// message reaches another one, and gives up a connection after 10 s.
pub fn http_builder() -> ClientBuilder {
    let policy = redirect::Policy::custom(|attempt| {
        let same = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
        if attempt.previous().len() > REDIRECTS {
            attempt.error("too many redirects")
        } else if same {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    reqwest::Client::builder().redirect(policy).connect_timeout(CONNECT_TIMEOUT)
}

/// Rejects a response of, or a redirect to, another origin.
pub(super) fn same_origin(asked: &Url, response: &Response) -> Result<(), ClientError> {
    let target = || {
        let location = response.headers().get(LOCATION)?.to_str().ok()?;
        response.url().join(location).ok()
    };
    let answered = if response.status().is_redirection() { target() } else { None };
    let answered = answered.as_ref().unwrap_or_else(|| response.url());
    if answered.origin() == asked.origin() {
        return Ok(());
    }
    let to = answered.origin().ascii_serialization();
    Err(ClientError::Redirected { host: host(asked), to })
}

/// Reads a body of at most `limit` bytes.
pub(super) async fn read_body(
    response: Response,
    host: &str,
    limit: usize,
    time: TimeLeft,
) -> Result<Bytes, ClientError> {
    let mut chunks = response.bytes_stream();
    let collect = async {
        let mut body = BytesMut::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| transport_error(error, host, time))?;
            if body.len().saturating_add(chunk.len()) > limit {
                return Err(ClientError::TooLarge { what: "a response", limit: limit as u64 });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    };
    tokio::time::timeout(time.time, collect).await.unwrap_or_else(|_| Err(time.over(host)))
}

/// The part of a response's head that is needed after its body was read.
pub(super) struct Head {
    status: StatusCode,
    content_type: Option<String>,
    scheme: Option<String>,
    retry_after: Option<Duration>,
}

impl Head {
    pub(super) fn of(response: &Response) -> Self {
        let headers = response.headers();
        Self {
            status: response.status(),
            content_type: text(headers, CONTENT_TYPE.as_str()).map(str::to_ascii_lowercase),
            scheme: text(headers, WWW_AUTHENTICATE.as_str()).and_then(scheme),
            retry_after: text(headers, RETRY_AFTER.as_str()).and_then(seconds),
        }
    }

    /// Whether the body is a stream of events.
    pub(super) fn is_stream(&self) -> bool {
        let content_type = self.content_type.as_deref().unwrap_or_default();
        content_type.trim_start().starts_with("text/event-stream")
    }

    /// The error of a failed response. A JSON-RPC error in the body takes precedence over the status.
    pub(super) fn check(&self, host: &str, body: &[u8]) -> Result<(), ClientError> {
        if self.status.is_success() {
            return Ok(());
        }
        let (host, excerpt) = (host.to_owned(), excerpt(body));
        if matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(ClientError::Denied {
                host,
                status: self.status,
                scheme: self.scheme.clone(),
                excerpt,
            });
        }
        if let Err(error @ ClientError::Remote(_)) = result(body) {
            return Err(error);
        }
        Err(ClientError::Status { host, status: self.status, excerpt, retry_after: self.retry_after })
    }

    /// Replaces a decoding error by the content type if the response is not JSON.
    pub(super) fn explain(&self, error: ClientError, host: &str, body: &[u8]) -> ClientError {
        let is_json = self.content_type.as_deref().is_none_or(|value| value.contains("json"));
        let is_unread = matches!(error, ClientError::Protocol(_) | ClientError::Card(_));
        if is_json || !is_unread || serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() {
            return error;
        }
        let content_type = excerpt_of(self.content_type.as_deref().unwrap_or_default());
        ClientError::ContentType { host: host.to_owned(), content_type, excerpt: excerpt(body) }
    }
}

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The scheme of a challenge: its first word.
fn scheme(challenge: &str) -> Option<String> {
    let word = challenge.split([' ', ',']).next().filter(|word| !word.is_empty())?;
    word.bytes().all(|byte| byte.is_ascii_graphic()).then(|| word.chars().take(32).collect())
}

/// Reads `Retry-After` in seconds; a date is ignored.
fn seconds(value: &str) -> Option<Duration> {
    Some(Duration::from_secs(value.trim().parse().ok()?).min(LONGEST_RETRY_AFTER))
}

/// Host and port, for messages: a URL may contain credentials.
pub(super) fn host(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => "the agent".to_owned(),
    }
}
