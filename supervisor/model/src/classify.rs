//! Turns the status, the headers and the body of a failed call into a [`ModelError`]. Pure.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::chat::{ModelError, ModelErrorKind};
use crate::redact::redact;
use crate::text::truncated;

/// Most characters of a provider's message in an error.
const DETAIL_CHARS: usize = 300;

/// The longest accepted wait; a provider that asks for more is wrong or malicious.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// A failed call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Failure<'a> {
    /// The HTTP status; `None` for a failure inside a stream.
    pub status: Option<StatusCode>,
    pub headers: Option<&'a HeaderMap>,
    /// The body, or the error event of a stream.
    pub body: &'a str,
}

/// The model of a failed call, for messages.
#[derive(Debug, Clone, Default)]
pub struct Subject {
    /// The name, as `provider/model`.
    pub model: String,
    /// The environment variable of the key.
    pub key_variable: Option<String>,
    /// The key, to be removed from the provider's message.
    pub secret: Option<secrecy::SecretString>,
}

impl Subject {
    fn provider(&self) -> &str {
        self.model.split('/').next().unwrap_or_default()
    }

    /// An error of this model. Removes everything that looks like a key from the message.
    pub fn error(&self, kind: ModelErrorKind, message: impl AsRef<str>) -> ModelError {
        let message = redact(message.as_ref(), self.secret.as_ref());
        ModelError { kind, model: self.model.clone(), message, retry_after: None }
    }
}

/// The error of a failed call, with what to do about it.
pub fn classify(failure: &Failure<'_>, subject: &Subject, now: Timestamp) -> ModelError {
    let body = Body::parse(failure.body);
    let kind = kind(failure.status, &body);
    let wait = failure.headers.and_then(|headers| header_wait(headers, now)).or(body.retry_delay);
    let mut error = subject.error(kind, message(kind, failure.status, &body, subject, wait));
    error.retry_after = wait;
    error
}

/// The wait that the headers ask for: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date
/// (RFC 9110, 10.2.3).
pub fn header_wait(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return seconds(millis / 1000.0);
    }
    let value = text(RETRY_AFTER.as_str())?;
    match value.parse::<f64>() {
        Ok(number) => seconds(number),
        Err(_) => until(value, now),
    }
}

fn seconds(number: f64) -> Option<Duration> {
    let wait = Duration::try_from_secs_f64(number).ok()?;
    Some(wait.min(LONGEST_WAIT))
}

fn until(date: &str, now: Timestamp) -> Option<Duration> {
    let date = DateTimeParser::new().parse_timestamp(date).ok()?;
    let wait = Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO);
    Some(wait.min(LONGEST_WAIT))
}

fn kind(status: Option<StatusCode>, body: &Body) -> ModelErrorKind {
    let limited = status == Some(StatusCode::TOO_MANY_REQUESTS);
    if body.says(&OUT_OF_CREDIT) {
        return ModelErrorKind::Auth;
    }
    if !limited && body.is_overflow() {
        return ModelErrorKind::ContextOverflow;
    }
    if body.says(&FILTERED) {
        return ModelErrorKind::ContentFilter;
    }
    // Gemini refuses a wrong key with 400.
    if status == Some(StatusCode::BAD_REQUEST) && body.says(&["api_key_invalid"]) {
        return ModelErrorKind::Auth;
    }
    match status {
        Some(status) => of_status(status),
        None => body.kind(),
    }
}

fn of_status(status: StatusCode) -> ModelErrorKind {
    match status.as_u16() {
        401..=403 | 407 => ModelErrorKind::Auth,
        413 => ModelErrorKind::ContextOverflow,
        408 | 425 => ModelErrorKind::Transport,
        429 => ModelErrorKind::RateLimited,
        500.. => ModelErrorKind::Overloaded,
        400..=499 => ModelErrorKind::InvalidRequest,
        _ => ModelErrorKind::Protocol,
    }
}

const OUT_OF_CREDIT: [&str; 3] = ["insufficient_quota", "billing_not_active", "credit balance is too low"];
const FILTERED: [&str; 4] =
    ["content_filter", "content_policy_violation", "responsibleaipolicyviolation", "guardrail_intervened"];
const OVERFLOW: [&str; 7] = [
    "context_length_exceeded",
    "input is too long",
    "prompt is too long",
    "too many tokens",
    "context length exceeded",
    "maximum context length",
    "exceeds the context window",
];

/// The error body of any provider.
struct Body {
    /// The provider's message, or the start of a body that is not JSON.
    detail: String,
    /// Codes, types and the message, in lower case, for matching.
    words: String,
    retry_delay: Option<Duration>,
}

impl Body {
    fn parse(text: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            let detail = one_line(text);
            return Self { words: detail.to_lowercase(), detail, retry_delay: None };
        };
        // Gemini's streaming endpoint wraps the error in an array.
        let value = value.get(0).unwrap_or(&value);
        let inner = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let detail = sentence(inner).map(one_line).unwrap_or_default();
        let codes =
            ["code", "type", "status", "param", "__type"].iter().filter_map(|key| inner.get(key)?.as_str());
        let nested =
            ["/innererror/code", "/details/0/reason"].iter().filter_map(|path| inner.pointer(path)?.as_str());
        let words = codes.chain(nested).chain([detail.as_str()]).collect::<Vec<_>>().join(" ").to_lowercase();
        Self { detail, words, retry_delay: retry_delay(inner) }
    }

    fn says(&self, needles: &[&str]) -> bool {
        needles.iter().any(|needle| self.words.contains(needle))
    }

    /// Upstream's substrings (contract, 3.8) and the providers' codes, except where a provider says "too many
    /// tokens" of a rate.
    fn is_overflow(&self) -> bool {
        let rate = self.says(&["please wait", "per minute", "rate limit", "rate_limit", "throttl"]);
        let limit = self.words.contains("token") && self.words.contains("maximum");
        // "max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens" is the caller's setting.
        let own_setting =
            self.says(&["max_tokens:", "max_completion_tokens", "max_output_tokens", "output tokens"]);
        !rate && (self.says(&OVERFLOW) || (limit && !own_setting))
    }

    /// The kind of an error event inside a stream, which has no status.
    fn kind(&self) -> ModelErrorKind {
        let table: [(&[&str], ModelErrorKind); 4] = [
            (
                &["authentication", "permission", "unauthenticated", "invalid_api_key", "api_key_invalid"],
                ModelErrorKind::Auth,
            ),
            (
                &["rate_limit", "rate limit", "resource_exhausted", "throttl", "too many", "429"],
                ModelErrorKind::RateLimited,
            ),
            (
                &["invalid_request", "invalid_argument", "validation", "not_found"],
                ModelErrorKind::InvalidRequest,
            ),
            (&["event-stream", "crc mismatch", "truncated"], ModelErrorKind::Protocol),
        ];
        let found = table.iter().find(|(needles, _)| self.says(needles));
        // Any other error in the middle of an answer is the provider's.
        found.map_or(ModelErrorKind::Overloaded, |(_, kind)| *kind)
    }
}

fn sentence(error: &Value) -> Option<&str> {
    let member = ["message", "Message", "detail", "error"].iter().find_map(|key| error.get(key)?.as_str());
    member.or_else(|| error.as_str())
}

/// Google's `RetryInfo` (`"retryDelay": "34s"`) among an error's details.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    seconds(delay.strip_suffix('s')?.parse().ok()?)
}

fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    truncated(&words, DETAIL_CHARS, "…").into_owned()
}

fn message(
    kind: ModelErrorKind,
    status: Option<StatusCode>,
    body: &Body,
    subject: &Subject,
    wait: Option<Duration>,
) -> String {
    let provider = subject.provider();
    let code = status.map_or(String::new(), |status| format!(" ({})", status.as_u16()));
    let detail = if body.detail.is_empty() { String::new() } else { format!(": {}", body.detail) };
    match kind {
        ModelErrorKind::Auth if body.says(&OUT_OF_CREDIT) || status == Some(StatusCode::PAYMENT_REQUIRED) => {
            format!("{provider} says that the account has no credit left{code}: check its billing")
        }
        // The body of a refused key tends to repeat the key, so it is not quoted.
        ModelErrorKind::Auth => {
            let variable = subject.key_variable.as_deref().unwrap_or("the provider's credentials");
            format!("{provider} refused the key{code}: check {variable}")
        }
        ModelErrorKind::RateLimited => {
            let wait = wait
                .map_or(String::new(), |wait| format!("; it asks to wait {} s", wait.as_secs_f64().ceil()));
            format!("{provider} takes no more requests for now{code}{detail}{wait}")
        }
        ModelErrorKind::Overloaded => format!("{provider} is overloaded or broken{code}{detail}"),
        ModelErrorKind::ContextOverflow => {
            format!("the conversation is too long for the model{code}{detail}")
        }
        ModelErrorKind::ContentFilter => format!("{provider}'s content filter refused{code}{detail}"),
        ModelErrorKind::InvalidRequest if status == Some(StatusCode::NOT_FOUND) => {
            format!(
                "{provider} does not know the model or the address{code}: check the model's name and the base URL{detail}"
            )
        }
        ModelErrorKind::InvalidRequest => format!("{provider} refused the request{code}{detail}"),
        ModelErrorKind::Protocol => {
            format!(
                "{provider} answered something that is not its protocol{code}: check the base URL{detail}"
            )
        }
        _ => format!("the call to {provider} failed{code}{detail}"),
    }
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
