//! One attempt to deliver.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use bytes::Bytes;
use caipe_net::{Client, Refusal};
use jiff::Timestamp;
use reqwest::{Method, Response};
use url::Url;

use super::policy::{Answer, retry_after};
use crate::model::{AuthenticationInfo, TaskPushNotificationConfig};
use crate::version::ProtocolVersion;

/// Most bytes of an answer that are read, which lets the connection be used again; nobody looks at them.
const MOST_ANSWER: usize = 4 * 1024;

/// How long to wait for the rest of an answer that has come already.
const REST_OF_ANSWER: Duration = Duration::from_secs(1);

/// Posts a notification and waits at most `deadline` for the head of the answer. That says all: a body that is slow
/// to come, or too long, costs the connection and changes nothing.
pub(super) async fn post(
    client: &Client,
    url: &Url,
    headers: HeaderMap,
    body: Bytes,
    deadline: Duration,
) -> Answer {
    let request = match client.request(Method::POST, url.clone()) {
        Ok(request) => request.headers(headers).body(body),
        Err(refusal) => return Answer::Refused(refusal),
    };
    let response = match tokio::time::timeout(deadline, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return failed(&error),
        Err(_) => return Answer::None("it did not answer in time"),
    };
    let answer = Answer::Status(response.status().as_u16(), asked(response.headers()));
    drop(tokio::time::timeout(REST_OF_ANSWER, discard(response)).await);
    answer
}

fn asked(headers: &HeaderMap) -> Option<Duration> {
    retry_after(headers.get(header::RETRY_AFTER)?.to_str().ok()?, Timestamp::now())
}

async fn discard(mut response: Response) {
    let mut read = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        read += chunk.len();
        if read > MOST_ANSWER {
            break;
        }
    }
}

fn failed(error: &reqwest::Error) -> Answer {
    if let Some(refusal) = caipe_net::refusal(error) {
        return Answer::Refused(Refusal::clone(refusal));
    }
    Answer::None(if error.is_connect() { "it cannot be reached" } else { "the connection was lost" })
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

    fn told(config: &TaskPushNotificationConfig, version: ProtocolVersion) -> Vec<(String, String)> {
        let headers = headers(config, version);
        headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
    }

    #[test]
    fn each_version_has_its_headers() {
        let bare = TaskPushNotificationConfig::new("https://h/");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(told(&bare, ProtocolVersion::V0_3), [pair("content-type", "application/json")]);
        assert_eq!(told(&bare, ProtocolVersion::V1_0), [pair("content-type", "application/a2a+json")]);
        let full = TaskPushNotificationConfig {
            token: Some("t0k".to_owned()),
            authentication: Some(AuthenticationInfo {
                scheme: "Bearer".to_owned(),
                credentials: Some("s3cret".to_owned()),
            }),
            ..bare.clone()
        };
        let mut headers = told(&full, ProtocolVersion::V1_0);
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
        assert_eq!(told(&scheme_only, ProtocolVersion::V1_0).len(), 1);
        assert!(!format!("{full:?} {:?}", super::headers(&full, ProtocolVersion::V1_0)).contains("s3cret"));
    }
}
