//! Requests of the agent's server that are not part of the protocol.

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use serde_json::Value;

use super::http::{Head, host, read_body, same_origin};
use super::rpc::bearer_value;
use super::transport::transport_error;
use super::{A2aClient, ClientError};

pub use reqwest::Method;

impl A2aClient {
    /// Sends a request without a body to a path below the address of the agent, with the credential and the headers of this client.
    /// Returns the JSON of the response.
    ///
    /// # Errors
    /// As those of other calls; [`ClientError::Status`] if the server refuses it.
    pub async fn request_json(&self, method: Method, path: &[&str]) -> Result<Value, ClientError> {
        let mut url = self.inner.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let options = &self.inner.options;
        let mut headers = options.headers.clone();
        headers.extend(self.call.header_map().clone());
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(bearer) = &options.bearer {
            headers.insert(AUTHORIZATION, bearer_value(bearer)?);
        }
        let (time, host) = (self.call.time_left(options.timeout)?, host(&url));
        let request = self.inner.http.request(method, url.clone()).headers(headers).timeout(time.time);
        let response = request.send().await.map_err(|error| transport_error(error, &host, time))?;
        same_origin(&url, &response)?;
        let head = Head::of(&response);
        let body = read_body(response, &host, options.max_message, time).await?;
        head.check(&host, &body)?;
        let fault = |error: serde_json::Error| ClientError::Protocol(error.to_string());
        serde_json::from_slice(&body).map_err(|error| head.explain(fault(error), &host, &body))
    }
}
