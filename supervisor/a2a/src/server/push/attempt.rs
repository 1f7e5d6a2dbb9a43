//! A delivery attempt.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use bytes::Bytes;
use caipe_net::{Client, Refusal};
use jiff::Timestamp;
use reqwest::{Method, Response};
use url::Url;

use super::retry::{AttemptResult, retry_after};
use crate::model::{AuthenticationInfo, TaskPushNotificationConfig};
use crate::version::ProtocolVersion;

/// Most bytes of a response that are read and dropped, so that the connection can be reused.
const MAX_RESPONSE: usize = 4 * 1024;

/// How long to wait for the rest of a response.
const RESPONSE_DEADLINE: Duration = Duration::from_secs(1);

/// Posts a notification and waits at most `deadline` for the head of the response, which decides the result. A body that is
/// slow or too long only costs the connection.
pub(super) async fn post(
    client: &Client,
    url: &Url,
    headers: HeaderMap,
    body: Bytes,
    deadline: Duration,
) -> AttemptResult {
    let request = match client.request(Method::POST, url.clone()) {
        Ok(request) => request.headers(headers).body(body),
        Err(refusal) => return AttemptResult::Refused(refusal),
    };
    let response = match tokio::time::timeout(deadline, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return failed(&error),
        Err(_) => return AttemptResult::NoResponse("it did not respond in time"),
    };
    let result = AttemptResult::Status(response.status().as_u16(), requested_wait(response.headers()));
    drop(tokio::time::timeout(RESPONSE_DEADLINE, discard(response)).await);
    result
}

fn requested_wait(headers: &HeaderMap) -> Option<Duration> {
    retry_after(headers.get(header::RETRY_AFTER)?.to_str().ok()?, Timestamp::now())
}

async fn discard(mut response: Response) {
    let mut read = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        read += chunk.len();
        if read > MAX_RESPONSE {
            break;
        }
    }
}

fn failed(error: &reqwest::Error) -> AttemptResult {
    if let Some(refusal) = caipe_net::refusal(error) {
        return AttemptResult::Refused(Refusal::clone(refusal));
    }
    AttemptResult::NoResponse(if error.is_connect() {
        "it cannot be reached"
    } else {
        "the connection was lost"
    })
}

/// The headers of every notification of a configuration (0.3, section 9.5; 1.0, section 4.3.3).
pub(super) fn headers(config: &TaskPushNotificationConfig, version: ProtocolVersion) -> HeaderMap {
    const TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");
    let media_type = match version {
        ProtocolVersion::V0_3 => "application/json",
        ProtocolVersion::V1_0 => "application/a2a+json",
    };
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    if let Some(token) = config.token.as_deref().and_then(secret) {
        headers.insert(TOKEN, token);
    }
    if let Some(AuthenticationInfo { scheme, credentials: Some(credentials) }) = &config.authentication
        && let Some(value) = secret(&format!("{scheme} {credentials}"))
    {
        headers.insert(header::AUTHORIZATION, value);
    }
    headers
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_pairs(config: &TaskPushNotificationConfig, version: ProtocolVersion) -> Vec<(String, String)> {
        let headers = headers(config, version);
        headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
    }

    #[test]
    fn each_version_has_its_headers() {
        let bare = TaskPushNotificationConfig::new("https://h/");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(header_pairs(&bare, ProtocolVersion::V0_3), [pair("content-type", "application/json")]);
        assert_eq!(
            header_pairs(&bare, ProtocolVersion::V1_0),
            [pair("content-type", "application/a2a+json")]
        );
        let full = TaskPushNotificationConfig {
            token: Some("t0k".to_owned()),
            authentication: Some(AuthenticationInfo {
                scheme: "Bearer".to_owned(),
                credentials: Some("s3cret".to_owned()),
            }),
            ..bare.clone()
        };
        let mut headers = header_pairs(&full, ProtocolVersion::V1_0);
        headers.sort();
        assert_eq!(
            headers,
            [
                pair("authorization", "Bearer s3cret"),
                pair("content-type", "application/a2a+json"),
                pair("x-a2a-notification-token", "t0k"),
            ]
        );
        let no_credentials = AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: None };
        let scheme_only = TaskPushNotificationConfig { authentication: Some(no_credentials), ..bare };
        assert_eq!(header_pairs(&scheme_only, ProtocolVersion::V1_0).len(), 1);
        assert!(!format!("{full:?} {:?}", super::headers(&full, ProtocolVersion::V1_0)).contains("s3cret"));
    }
}
