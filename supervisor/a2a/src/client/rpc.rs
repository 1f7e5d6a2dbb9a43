//! JSON-RPC requests.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::ClientError;
use super::http::{Head, host, read_body, same_origin};
use super::response::{decode, result};
use super::sse::{self, Numbered, RawEvents};
use super::transport::{TimeLeft, transport_error};
use super::{A2aClient, Agreed};
use crate::event_id;
use crate::version::ProtocolVersion;

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

/// Calls with parameters in the shape of the version in use.
impl A2aClient {
    /// Calls a method and decodes its result.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        agreed: &Agreed,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
    ) -> Result<T, ClientError> {
        self.answer(agreed, method, params, limit, |body| decode(result(body)?)).await
    }

    /// Calls a method of the version in use. Its name and parameters differ between 1.0 (`new`) and 0.3 (`old`); `Old` is
    /// the result of 0.3.
    pub(super) async fn call_in_version<T, Old>(
        &self,
        agreed: &Agreed,
        new: (&str, &impl Serialize),
        old: (&str, &impl Serialize),
    ) -> Result<T, ClientError>
    where
        T: DeserializeOwned + From<Old>,
        Old: DeserializeOwned,
    {
        let limit = self.inner.options.timeout;
        match agreed.version {
            ProtocolVersion::V1_0 => self.call(agreed, new.0, new.1, limit).await,
            ProtocolVersion::V0_3 => self.call::<Old>(agreed, old.0, old.1, limit).await.map(T::from),
        }
    }

    /// Calls a method and reads its response.
    pub(super) async fn answer<T>(
        &self,
        agreed: &Agreed,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
        read: impl FnOnce(&Bytes) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let time = self.call.time_left(limit)?;
        let request = self.request(agreed, method, params, "application/json")?.timeout(time.time);
        let response = self.sent(agreed, request, time).await?;
        let (head, host) = (Head::of(&response), host(&agreed.endpoint));
        let body = read_body(response, &host, self.inner.options.max_message, time).await?;
        head.check(&host, &body)?;
        read(&body).map_err(|error| head.explain(error, &host, &body))
    }

    /// Calls a method that streams. One that answers with plain JSON has one event, or an error.
    pub(super) async fn open(
        &self,
        agreed: &Agreed,
        method: &str,
        params: &impl Serialize,
        last_event_id: Option<u64>,
    ) -> Result<RawEvents, ClientError> {
        let options = &self.inner.options;
        let time = self.call.time_left(options.idle_timeout)?;
        let mut request = self.request(agreed, method, params, "text/event-stream")?;
        if let Some(last) = last_event_id {
            request = request.header("Last-Event-ID", event_id::to_string(last));
        }
        let response = tokio::time::timeout(time.time, self.sent(agreed, request, time)).await;
        let host = host(&agreed.endpoint);
        let response = response.unwrap_or_else(|_| Err(time.over(&host)))?;
        let head = Head::of(&response);
        if response.status().is_success() && head.is_stream() {
            return Ok(sse::events(response, host, agreed.version, sse::Limits::of(options)));
        }
        let body = read_body(response, &host, options.max_message, time).await?;
        head.check(&host, &body)?;
        let (event, _) =
            sse::event(&body, agreed.version).map_err(|error| head.explain(error, &host, &body))?;
        Ok(sse::single(Numbered { seq: None, event }))
    }

    async fn sent(
        &self,
        agreed: &Agreed,
        request: RequestBuilder,
        time: TimeLeft,
    ) -> Result<Response, ClientError> {
        let sent = request.send().await;
        let response = sent.map_err(|error| transport_error(error, &host(&agreed.endpoint), time))?;
        same_origin(&agreed.endpoint, &response)?;
        Ok(response)
    }

    fn request(
        &self,
        agreed: &Agreed,
        method: &str,
        params: &impl Serialize,
        accept: &'static str,
    ) -> Result<RequestBuilder, ClientError> {
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        let body = serde_json::to_vec(&Request { jsonrpc: "2.0", id, method, params })
            .map_err(|error| ClientError::Protocol(format!("the request cannot be encoded: {error}")))?;
        let mut headers = self.headers(agreed.version)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        Ok(self.inner.http.post(agreed.endpoint.clone()).headers(headers).body(body))
    }

    /// The headers of every request: the caller's own, then those of the protocol.
    fn headers(&self, version: ProtocolVersion) -> Result<HeaderMap, ClientError> {
        let mut headers = self.inner.options.headers.clone();
        headers.extend(self.call.header_map().clone());
        let extensions = match version {
            ProtocolVersion::V0_3 => HeaderName::from_static("x-a2a-extensions"),
            ProtocolVersion::V1_0 => {
                headers.insert(ProtocolVersion::HEADER, HeaderValue::from_static("1.0"));
                HeaderName::from_static("a2a-extensions")
            }
        };
        let mut uris: Vec<&str> = Vec::new();
        for uri in self.inner.options.extensions.iter().chain(self.call.extension_uris()) {
            if !uris.contains(&uri.as_str()) {
                uris.push(uri);
            }
        }
        if !uris.is_empty() {
            let fault = |_| ClientError::Header(extensions.to_string());
            let value = HeaderValue::from_str(&uris.join(", ")).map_err(fault)?;
            headers.insert(extensions, value);
        }
        if let Some(bearer) = &self.inner.options.bearer {
            headers.insert(AUTHORIZATION, bearer_value(bearer)?);
        }
        Ok(headers)
    }
}

/// The value of an `Authorization` header.
pub(super) fn bearer_value(token: &SecretString) -> Result<HeaderValue, ClientError> {
    let value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
    let mut value = value.map_err(|_| ClientError::Header(AUTHORIZATION.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}
