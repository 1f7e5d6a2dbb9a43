//! Slack's Web API.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use reqwest::header::CONTENT_TYPE;
use reqwest::{RequestBuilder, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::delivery::{Call, Fault};

/// The address of Slack's Web API.
pub(crate) const SLACK: &str = "https://slack.com/api";
/// How long a call may take.
const DEADLINE: Duration = Duration::from_secs(15);
/// How long the transfer of a file may take.
const TRANSFER_DEADLINE: Duration = Duration::from_mins(1);
/// The wait after a limit whose answer does not say how long to wait, and the longest that is accepted.
const DEFAULT_WAIT: Duration = Duration::from_secs(5);
const LONGEST_WAIT: Duration = Duration::from_mins(5);
/// How long the calls of a method are made one at a time after a limit.
const CAUTION: Duration = Duration::from_mins(1);
/// The most attempts of a call that waits for the limits to pass.
const MOST_ATTEMPTS: u32 = 20;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// Too many calls; the wait until the next one.
    #[error("failed to call {method}: Slack allows no more calls for {} s", wait.as_secs())]
    RateLimited {
        /// The method of the Web API.
        method: String,
        /// The time until the next call is allowed.
        wait: Duration,
    },
    /// Slack answered with an error code.
    #[error("failed to call {method}: Slack answered `{code}`{}", advice(code))]
    Slack {
        /// The method of the Web API.
        method: String,
        /// Slack's error code.
        code: String,
    },
    /// There was no usable answer, so it is unknown whether Slack acted.
    #[error("failed to call {method}: {reason}")]
    Transport {
        /// The method of the Web API.
        method: String,
        /// The reason, without the address.
        reason: String,
    },
    /// A file was not read or not sent.
    #[error("failed to transfer a file: {reason}")]
    Transfer {
        /// The reason, without the address.
        reason: String,
    },
}

/// What a person can do about an error code.
fn advice(code: &str) -> &'static str {
    match code {
        "invalid_auth" | "not_authed" | "account_inactive" | "token_revoked" | "token_expired" => {
            "; install the app again, and set the new token"
        }
        "missing_scope" => {
            "; compare the scopes of the app with `caipe-supervisor slack manifest`, and install it again"
        }
        "not_in_channel" | "channel_not_found" => "; invite the bot to the channel",
        "not_allowed_token_type" => "; the bot token starts with xoxb-, the app token with xapp-",
        _ => "",
    }
}

impl ApiError {
    /// Whether the token is invalid, so that no call can succeed.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Slack { code, .. } if matches!(code.as_str(),
            "invalid_auth" | "not_authed" | "account_inactive" | "token_revoked" | "token_expired" | "not_allowed_token_type"))
    }

    /// What the delivery of a turn makes of it; `Err` has the wait of a limit.
    pub(crate) fn fault(&self) -> Result<Fault, Duration> {
        let code = match self {
            Self::RateLimited { wait, .. } => return Err(*wait),
            Self::Transport { .. } => return Ok(Fault::Ambiguous),
            Self::Transfer { .. } => return Ok(Fault::Rejected),
            Self::Slack { code, .. } => code.as_str(),
        };
        Ok(match code {
            "message_not_in_streaming_state"
            | "not_in_streaming_state"
            | "msg_too_long"
            | "msg_blocks_too_long" => Fault::StreamEnded,
            "channel_type_not_supported"
            | "unknown_method"
            | "method_deprecated"
            | "feature_not_enabled"
            | "missing_recipient_user_id"
            | "missing_recipient_team_id"
            | "streaming_mode_mismatch" => Fault::NoStreams,
            "channel_not_found"
            | "is_archived"
            | "not_in_channel"
            | "message_not_found"
            | "thread_not_found"
            | "invalid_thread_ts"
            | "cannot_reply_to_message"
            | "restricted_action"
            | "user_not_found" => Fault::Gone,
            "internal_error" | "fatal_error" | "service_unavailable" | "request_timeout" => Fault::Ambiguous,
            _ if self.is_unauthorized() => Fault::Gone,
            _ => Fault::Rejected,
        })
    }
}

/// A client of the Web API. Cheap to clone; clones share the limits that Slack has announced.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    http: reqwest::Client,
    base: String,
    token: Arc<SecretString>,
    /// The newest limit of each method.
    limits: Arc<Mutex<HashMap<String, Limit>>>,
}

/// A limit that Slack has announced.
#[derive(Debug, Clone)]
struct Limit {
    /// The time of the next allowed call.
    until: Instant,
    /// One permit, which the callers that wait get in their order.
    queue: Arc<Semaphore>,
}

/// The permission to make a call now. While a method is limited, there is one at a time.
#[derive(Debug)]
pub(crate) struct Slot {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Api {
    pub(crate) fn new(http: reqwest::Client, base: &str, token: SecretString) -> Self {
        let base = base.trim_end_matches('/').to_owned();
        Self { http, base, token: Arc::new(token), limits: Arc::default() }
    }

    /// The HTTP client, for connections that are not calls.
    pub(crate) const fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Calls a method with a JSON body.
    pub(crate) async fn call(&self, method: &str, body: &Value) -> Result<Value, ApiError> {
        let request = self.http.post(format!("{}/{method}", self.base)).json(body);
        self.send(method, request).await
    }

    /// Calls a method with a JSON body, and waits while Slack allows no more calls.
    pub(crate) async fn call_when_allowed(&self, method: &str, body: &Value) -> Result<Value, ApiError> {
        self.send_when_allowed(method, self.http.post(format!("{}/{method}", self.base)).json(body)).await
    }

    /// Calls a method that reads no JSON, with a form, and waits while Slack allows no more calls.
    pub(crate) async fn read(&self, method: &str, parameters: &[(&str, &str)]) -> Result<Value, ApiError> {
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
        let request = self.http.post(format!("{}/{method}", self.base));
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
        self.send_when_allowed(method, request).await
    }

    async fn send_when_allowed(&self, method: &str, request: RequestBuilder) -> Result<Value, ApiError> {
        for _ in 1..MOST_ATTEMPTS {
            let Some(copy) = request.try_clone() else { break };
            let slot = self.slot(method).await;
            let result = self.send(method, copy).await;
            drop(slot);
            if !matches!(result, Err(ApiError::RateLimited { .. })) {
                return result;
            }
        }
        self.send(method, request).await
    }

    /// Waits until a method may be called. Callers of a limited method wait in their order, so that they do not all call at
    /// the moment when the limit passes.
    pub(crate) fn slot(&self, method: &str) -> impl Future<Output = Slot> + Send + use<> {
        let (api, method) = (self.clone(), method.to_owned());
        async move {
            let queue = api.limits().get(&method).map(|limit| Arc::clone(&limit.queue));
            let Some(queue) = queue else { return Slot { _permit: None } };
            // Nothing closes the queue.
            let permit = queue.acquire_owned().await.ok();
            while let Some(wait) = api.wait(&method) {
                tokio::time::sleep(wait).await;
            }
            Slot { _permit: permit }
        }
    }

    async fn send(&self, method: &str, request: RequestBuilder) -> Result<Value, ApiError> {
        let limited = |wait| ApiError::RateLimited { method: method.to_owned(), wait };
        if let Some(wait) = self.wait(method) {
            return Err(limited(wait));
        }
        let failed = |error: reqwest::Error| ApiError::Transport {
            method: method.to_owned(),
            reason: error.without_url().to_string(),
        };
        let request = request.bearer_auth(self.token.expose_secret()).timeout(DEADLINE);
        let response = request.send().await.map_err(failed)?;
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            let seconds =
                response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
            let wait = seconds.map_or(DEFAULT_WAIT, Duration::from_secs).min(LONGEST_WAIT);
            self.limit(method, wait);
            return Err(limited(wait));
        }
        let status = response.status();
        let body: Value = response.json().await.map_err(failed)?;
        if body["ok"] == true {
            return Ok(body);
        }
        let code = body["error"].as_str().map_or_else(|| format!("HTTP {}", status.as_u16()), str::to_owned);
        if code == "ratelimited" {
            self.limit(method, DEFAULT_WAIT);
            return Err(limited(DEFAULT_WAIT));
        }
        Err(ApiError::Slack { method: method.to_owned(), code })
    }

    /// Sends a response to the URL of a command. The URL is the permission.
    pub(crate) async fn respond(&self, url: &str, response: &Value) -> Result<(), ApiError> {
        let sent = self.http.post(url).json(response).timeout(DEADLINE).send().await;
        sent.and_then(reqwest::Response::error_for_status).map(drop).map_err(|error| ApiError::Transport {
            method: "the response URL of a command".to_owned(),
            reason: error.without_url().to_string(),
        })
    }

    /// Reads a file of Slack with the token. The caller has checked that the URL is Slack's. `media_type` is the one that Slack
    /// has announced: where the token does not permit the download, Slack answers with a web page.
    pub(crate) async fn download(
        &self,
        url: &str,
        media_type: &str,
        most: usize,
    ) -> Result<Vec<u8>, ApiError> {
        let request = self.http.get(url).bearer_auth(self.token.expose_secret());
        let response = transfer(request).await?;
        let received = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if received.is_some_and(|received| received.starts_with("text/html")) && media_type != "text/html" {
            return Err(transfer_error(
                "Slack answered with a web page; does the app have the scope files:read?",
            ));
        }
        content(response, most).await
    }

    /// Reads a file without a token.
    pub(crate) async fn fetch(&self, url: &str, most: usize) -> Result<Vec<u8>, ApiError> {
        content(transfer(self.http.get(url)).await?, most).await
    }

    /// Sends a file to the URL that Slack gave for it. The URL is the permission.
    pub(crate) async fn upload(&self, url: &str, content: Vec<u8>) -> Result<(), ApiError> {
        transfer(self.http.post(url).body(content)).await.map(drop)
    }

    fn limit(&self, method: &str, wait: Duration) {
        let until = Instant::now() + wait;
        let new = || Limit { until, queue: Arc::new(Semaphore::new(1)) };
        self.limits().entry(method.to_owned()).or_insert_with(new).until = until;
    }

    /// The wait until a method may be called again.
    fn wait(&self, method: &str) -> Option<Duration> {
        let left = self.limits().get(method)?.until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// A panic cannot leave the map inconsistent, so a poisoned lock is usable.
    fn limits(&self) -> std::sync::MutexGuard<'_, HashMap<String, Limit>> {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.retain(|_, limit| limit.until.elapsed() < CAUTION);
        limits
    }

    /// Makes a call of a delivery in a thread. Returns the time stamp of a new message.
    pub(crate) async fn deliver(&self, target: &Target, call: &Call) -> Result<Option<String>, ApiError> {
        let answer = self.call(call.method(), &target.body(call)).await?;
        Ok(answer["ts"].as_str().map(str::to_owned))
    }
}

fn transfer_error(reason: impl Into<String>) -> ApiError {
    ApiError::Transfer { reason: reason.into() }
}

/// Starts a transfer. A redirect to another host is a failure, because the client does not follow it.
async fn transfer(request: RequestBuilder) -> Result<reqwest::Response, ApiError> {
    let response = request.timeout(TRANSFER_DEADLINE).send().await;
    let response = response.map_err(|error| transfer_error(error.without_url().to_string()))?;
    if response.status().is_success() {
        return Ok(response);
    }
    Err(transfer_error(format!("the server answered with HTTP {}", response.status().as_u16())))
}

/// The content of a response, at most `most` bytes.
async fn content(response: reqwest::Response, most: usize) -> Result<Vec<u8>, ApiError> {
    let (mut content, mut chunks) = (Vec::new(), response.bytes_stream());
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| transfer_error(error.without_url().to_string()))?;
        if content.len() + chunk.len() > most {
            return Err(transfer_error(format!("it is larger than {most} bytes")));
        }
        content.extend_from_slice(&chunk);
    }
    Ok(content)
}

/// The place of a turn's messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Target {
    pub(crate) channel: String,
    pub(crate) thread: String,
    pub(crate) team: String,
    /// The person who asked.
    pub(crate) user: String,
}

impl Call {
    /// The method of the Web API.
    pub(crate) const fn method(&self) -> &'static str {
        match self {
            Self::Start { .. } => "chat.startStream",
            Self::Append { .. } => "chat.appendStream",
            Self::Stop { .. } => "chat.stopStream",
            Self::Post { .. } => "chat.postMessage",
            Self::Update { .. } => "chat.update",
            Self::Delete { .. } => "chat.delete",
        }
    }
}

impl Target {
    pub(crate) fn body(&self, call: &Call) -> Value {
        let Self { channel, thread, team, user } = self;
        match call {
            Call::Start { chunks } => {
                let mut body = json!({
                    "channel": channel, "thread_ts": thread, "task_display_mode": "plan",
                    "recipient_team_id": team, "recipient_user_id": user,
                });
                if !chunks.is_empty() {
                    body["chunks"] = json!(chunks);
                }
                body
            }
            Call::Append { ts, chunks } => {
                json!({"channel": channel, "ts": ts, "chunks": chunks})
            }
            Call::Stop { ts, chunks, blocks } => {
                let mut body = json!({"channel": channel, "ts": ts});
                for (name, value) in [("chunks", chunks), ("blocks", blocks)] {
                    if !value.is_empty() {
                        body[name] = json!(value);
                    }
                }
                body
            }
            Call::Post { text, blocks } => {
                let mut body = json!({
                    "channel": channel, "text": text, "blocks": blocks, "unfurl_links": false, "unfurl_media": false,
                });
                if !thread.is_empty() {
                    body["thread_ts"] = json!(thread);
                }
                body
            }
            Call::Update { ts, text, blocks } => {
                json!({"channel": channel, "ts": ts, "text": text, "blocks": blocks})
            }
            Call::Delete { ts } => json!({"channel": channel, "ts": ts}),
        }
    }
}
