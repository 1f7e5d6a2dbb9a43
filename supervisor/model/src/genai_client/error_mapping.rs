//! Errors of the client library as [`ModelError`]s.

use std::error::Error as _;

use genai::webc::StreamTimeout;
use jiff::Timestamp;
use serde_json::Value;

use crate::chat::{ModelError, ModelErrorKind};
use crate::classify::{Failure, Subject, classify};

/// The meaning of an error of the client library.
///
/// The HTTP error of a streaming call is wrapped in a stream error, whose own status and headers are `None`.
pub(super) fn of(error: &genai::Error, subject: &Subject, now: Timestamp) -> ModelError {
    match error {
        genai::Error::WebStream { error, .. } => wrapped(error.as_ref(), subject, now),
        genai::Error::HttpError { status, headers, body, .. } => {
            classify(&Failure { status: Some(*status), headers: Some(headers), body }, subject, now)
        }
        genai::Error::ChatResponse { body, .. } => in_stream(body, subject, now),
        genai::Error::StreamParse { serde_error, .. } => unparsable(serde_error, subject),
        genai::Error::WebModelCall { webc_error: genai::webc::Error::Reqwest(error), .. } => {
            transport(error, subject)
        }
        genai::Error::WebModelCall { .. } | genai::Error::WebAdapterCall { .. } => {
            let failure = Failure { status: error.status(), headers: error.headers(), body: "" };
            classify(&failure, subject, now)
        }
        genai::Error::JsonValueExt(_)
        | genai::Error::SerdeJson(_)
        | genai::Error::InvalidJsonResponseElement { .. } => subject.error(
            ModelErrorKind::Protocol,
            format!("an event of the answer is not as the protocol says: {error}"),
        ),
        // The client library rejects the request before it sends anything.
        other => {
            subject.error(ModelErrorKind::InvalidRequest, format!("the request cannot be sent: {other}"))
        }
    }
}

fn wrapped(
    error: &(dyn std::error::Error + Send + Sync + 'static),
    subject: &Subject,
    now: Timestamp,
) -> ModelError {
    if let Some(inner) = error.downcast_ref::<genai::Error>() {
        return of(inner, subject, now);
    }
    if let Some(inner) = error.downcast_ref::<reqwest::Error>() {
        return transport(inner, subject);
    }
    match error.downcast_ref::<StreamTimeout>() {
        Some(StreamTimeout::Headers) => subject.error(ModelErrorKind::Transport, "no answer came in time"),
        Some(StreamTimeout::Read) => {
            subject.error(ModelErrorKind::Transport, "the answer stopped coming in time")
        }
        None => subject.error(ModelErrorKind::Protocol, format!("the answer cannot be read: {error}")),
    }
}

/// An error that the provider reports in the middle of its answer.
fn in_stream(body: &Value, subject: &Subject, now: Timestamp) -> ModelError {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    classify(&Failure { status: None, headers: None, body: &text }, subject, now)
}

/// An event with incomplete JSON means that the connection broke.
fn unparsable(error: &serde_json::Error, subject: &Subject) -> ModelError {
    if error.is_eof() {
        return subject.error(ModelErrorKind::Truncated, "the answer was cut off in the middle of an event");
    }
    subject.error(
        ModelErrorKind::Protocol,
        format!("an event of the answer is not JSON ({error}): check the base URL"),
    )
}

/// Shows the causes only, because the error's own text may contain a URL with credentials.
fn transport(error: &reqwest::Error, subject: &Subject) -> ModelError {
    let what = match error {
        error if error.is_timeout() => "the connection timed out",
        error if error.is_connect() => "no connection",
        error if error.is_body() || error.is_decode() => "the connection broke in the middle of the answer",
        _ => "the connection failed",
    };
    let host = error.url().and_then(|url| url.host_str()).map_or(String::new(), |host| format!(" to {host}"));
    let cause = deepest(error).map_or(String::new(), |cause| format!(": {cause}"));
    subject.error(ModelErrorKind::Transport, format!("{what}{host}{cause}"))
}

fn deepest(error: &reqwest::Error) -> Option<String> {
    let mut cause = error.source()?;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    Some(cause.to_string())
}
