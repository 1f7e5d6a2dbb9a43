//! One JSON-RPC request and its answer.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{FutureExt, StreamExt, stream};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{RequestBuilder, Response, StatusCode};
use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use url::Url;

use super::error::{ClientError, RemoteError};
use super::{A2aClient, EventStream, sse};
use crate::version::ProtocolVersion;

/// Most bytes of a refusal that are worth showing.
const EXCERPT: usize = 300;

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

/// The members of an answer that matter; the id need not be checked where each request has its own exchange.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<RemoteError>,
}

/// The result in an answer.
pub(super) fn result(json: &[u8]) -> Result<&RawValue, ClientError> {
    let answer: Answer<'_> = serde_json::from_slice(json).map_err(|error| {
        ClientError::Protocol(format!("not a JSON-RPC answer: {error}: {}", excerpt(json)))
    })?;
    match (answer.error, answer.result) {
        (Some(error), _) => Err(ClientError::Remote(error)),
        (None, Some(result)) => Ok(result),
        (None, None) => Err(ClientError::Protocol("an answer without result and error".to_owned())),
    }
}

/// Decodes a result; a fault says where it is.
pub(super) fn decode<'a, T: Deserialize<'a>>(result: &'a RawValue) -> Result<T, ClientError> {
    let mut deserializer = serde_json::Deserializer::from_str(result.get());
    serde_path_to_error::deserialize(&mut deserializer)
        .map_err(|error| ClientError::Protocol(format!("an answer of the wrong shape: {error}")))
}

impl A2aClient {
    /// Calls a method and decodes its result.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        deadline: Duration,
    ) -> Result<T, ClientError> {
        let host = host(&self.inner.endpoint);
        let request = self.request(method, params)?.header(ACCEPT, "application/json").timeout(deadline);
        let response =
            request.send().await.map_err(|error| ClientError::transport(error, &host, deadline))?;
        let status = response.status();
        let body = read_body(response, &host, self.inner.options.max_message, deadline).await?;
        if !status.is_success() {
            return Err(status_error(status, &host, &body));
        }
        decode(result(&body)?)
    }

    /// Calls a method that streams. One that answers with plain JSON has one event, or an error.
    pub(super) async fn open(
        &self,
        method: &str,
        params: &impl Serialize,
        last_event_id: Option<u64>,
    ) -> Result<EventStream, ClientError> {
        let host = host(&self.inner.endpoint);
        let options = &self.inner.options;
        let mut request = self.request(method, params)?.header(ACCEPT, "text/event-stream");
        if let Some(last) = last_event_id {
            request = request.header("Last-Event-ID", last.to_string());
        }
        let wait = options.idle_timeout;
        let response = tokio::time::timeout(wait, request.send())
            .await
            .map_err(|_| ClientError::Timeout { host: host.clone(), after: wait })?
            .map_err(|error| ClientError::transport(error, &host, wait))?;
        let status = response.status();
        if status.is_success() && is_stream(&response) {
            return Ok(sse::events(response, host, self.inner.version, wait, options.max_message));
        }
        let body = read_body(response, &host, options.max_message, wait).await?;
        if !status.is_success() {
            return Err(status_error(status, &host, &body));
        }
        let (event, _) = sse::event(&body, self.inner.version)?;
        let event = super::StreamEvent { seq: None, event };
        Ok(stream::once(std::future::ready(Ok(event))).boxed())
    }

    fn request(&self, method: &str, params: &impl Serialize) -> Result<RequestBuilder, ClientError> {
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        let body = serde_json::to_vec(&Request { jsonrpc: "2.0", id, method, params })
            .map_err(|error| ClientError::Protocol(format!("the request cannot be encoded: {error}")))?;
        let options = &self.inner.options;
        let request = self.inner.http.post(self.inner.endpoint.clone()).body(body);
        let mut request = request.header(CONTENT_TYPE, "application/json");
        let extensions = match self.inner.version {
            ProtocolVersion::V0_3 => "X-A2A-Extensions",
            ProtocolVersion::V1_0 => {
                request = request.header("A2A-Version", ProtocolVersion::V1_0.as_str());
                "A2A-Extensions"
            }
        };
        if !options.extensions.is_empty() {
            request = request.header(extensions, options.extensions.join(", "));
        }
        if let Some(bearer) = &options.bearer {
            request = request.bearer_auth(bearer.expose_secret());
        }
        Ok(request)
    }
}

fn is_stream(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

/// Reads a body of at most `limit` bytes.
pub(super) async fn read_body(
    response: Response,
    host: &str,
    limit: usize,
    deadline: Duration,
) -> Result<Bytes, ClientError> {
    let mut chunks = response.bytes_stream();
    let collect = async {
        let mut body = BytesMut::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| ClientError::transport(error, host, deadline))?;
            if body.len().saturating_add(chunk.len()) > limit {
                return Err(ClientError::TooLarge(limit));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    };
    let expired = |_| Err(ClientError::Timeout { host: host.to_owned(), after: deadline });
    tokio::time::timeout(deadline, collect).map(|result| result.unwrap_or_else(expired)).await
}

/// A refusal; a JSON-RPC error in it says more than the status.
pub(super) fn status_error(status: StatusCode, host: &str, body: &[u8]) -> ClientError {
    match result(body) {
        Err(error @ ClientError::Remote(_)) => error,
        _ => ClientError::Status { host: host.to_owned(), status, excerpt: excerpt(body) },
    }
}

/// The beginning of what a peer sent, in one line.
pub(super) fn excerpt(body: &[u8]) -> String {
    let start = body.get(..EXCERPT).unwrap_or(body);
    let text = String::from_utf8_lossy(start);
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.trim().to_owned()
}

/// Host and port, for messages: an address may hold credentials.
pub(super) fn host(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => "the agent".to_owned(),
    }
}
