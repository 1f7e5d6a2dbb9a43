//! The HTTP endpoints: probes, and events that Slack signs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::accept::Reply;
use crate::error::BotError;
use crate::event::Incoming;
use crate::state::Bot;

/// How old a request may be, in seconds, as Slack recommends.
const MOST_AGE: u64 = 5 * 60;
/// The largest request, in bytes.
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// The HTTP endpoints of a bot: `/health` and `/ready`, and `/slack/events` once the bot receives events over HTTP. Clones are the
/// same endpoints.
#[derive(Debug, Clone, Default)]
pub struct Endpoints(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_ready: AtomicBool,
    /// The receiver of events, with the signing secret.
    receiver: OnceLock<(Bot, SecretString)>,
}

impl Endpoints {
    /// Serves until `shutdown`: events, interactions and commands at one path or at three, and the probes.
    ///
    /// # Errors
    /// If the listener fails.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> Result<(), BotError> {
        let router = Router::new()
            .route("/slack/events", post(receive))
            .route("/slack/interactive", post(receive))
            .route("/slack/commands", post(receive))
            .route("/health", get(|| async { "ok" }))
            .route("/ready", get(ready))
            .layer(DefaultBodyLimit::max(MOST_BYTES))
            .with_state(self);
        let serve = axum::serve(listener, router);
        let served = serve.with_graceful_shutdown(async move { shutdown.cancelled().await }).await;
        served.map_err(BotError::Listen)
    }

    /// Passes events with a signature by this secret to the bot.
    pub(crate) fn receive(&self, bot: Bot, secret: SecretString) {
        if self.0.receiver.set((bot, secret)).is_ok() {
            self.set_ready(true);
        }
    }

    /// Whether the bot receives events, which `/ready` reports.
    pub(crate) fn set_ready(&self, is_ready: bool) {
        self.0.is_ready.store(is_ready, Ordering::Relaxed);
    }
}

async fn ready(State(Endpoints(inner)): State<Endpoints>) -> (StatusCode, &'static str) {
    if inner.is_ready.load(Ordering::Relaxed) {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the bot receives no events: its log has the reason")
    }
}

async fn receive(State(Endpoints(inner)): State<Endpoints>, headers: HeaderMap, body: Bytes) -> Response {
    let Some((bot, secret)) = inner.receiver.get() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "the bot receives no events over HTTP").into_response();
    };
    if bot.shutdown.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the bot stops").into_response();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let signed =
        is_signed(secret, header("x-slack-request-timestamp"), header("x-slack-signature"), &body, now);
    if !signed {
        return (StatusCode::UNAUTHORIZED, "the signature is wrong or too old").into_response();
    }
    let Some(payload) = payload(header("content-type"), &body) else {
        return (StatusCode::BAD_REQUEST, "the body is neither JSON nor a form").into_response();
    };
    if payload["type"] == "url_verification" {
        return axum::Json(json!({"challenge": payload["challenge"]})).into_response();
    }
    let incoming = if payload.get("event").is_some() {
        Incoming::of_event(&payload)
    } else if payload.get("command").is_some() {
        Some(Incoming::of_command(&payload))
    } else {
        Incoming::of_interaction(&payload)
    };
    let Some(incoming) = incoming else { return StatusCode::OK.into_response() };
    match bot.accept(incoming).await {
        Reply::Accepted(None) => StatusCode::OK.into_response(),
        Reply::Accepted(Some(response)) => axum::Json(response).into_response(),
        Reply::Busy => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// The JSON of a request; forms of interactions have it in a field, commands are fields.
fn payload(content_type: &str, body: &[u8]) -> Option<Value> {
    if content_type.starts_with("application/json") {
        return serde_json::from_slice(body).ok();
    }
    let fields: Map<String, Value> = url::form_urlencoded::parse(body)
        .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
        .collect();
    match fields.get("payload").and_then(Value::as_str) {
        Some(payload) => serde_json::from_str(payload).ok(),
        None => fields.contains_key("command").then_some(Value::Object(fields)),
    }
}

/// Whether the signature is Slack's and the request is recent.
fn is_signed(secret: &SecretString, timestamp: &str, signature: &str, body: &[u8], now: u64) -> bool {
    let Ok(sent) = timestamp.parse::<u64>() else { return false };
    if sent.abs_diff(now) > MOST_AGE {
        return false;
    }
    let Some(signature) = signature.strip_prefix("v0=").and_then(hex) else { return false };
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
    let message = [b"v0:", timestamp.as_bytes(), b":", body].concat();
    hmac::verify(&key, &message, &signature).is_ok()
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in Slack's documentation of signed requests.
    #[test]
    fn the_signature_of_the_documentation_is_accepted() {
        let secret = SecretString::from("8f742231b10e8888abcd99yyyzzz85a5");
        let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
        let check = |timestamp: &str, signature: &str, body: &[u8], now| {
            is_signed(&secret, timestamp, signature, body, now)
        };
        assert!(check("1531420618", signature, body, 1_531_420_700));
        for (timestamp, signature, body, now) in [
            ("1531420618", signature, &body[..], 1_531_421_000),
            ("1531420619", signature, &body[..], 1_531_420_700),
            ("1531420618", signature, b"other", 1_531_420_700),
            ("1531420618", "v0=a2", &body[..], 1_531_420_700),
            ("1531420618", "", &body[..], 1_531_420_700),
            ("", signature, &body[..], 1_531_420_700),
        ] {
            assert!(!check(timestamp, signature, body, now), "{timestamp} {signature}");
        }
    }

    #[test]
    fn forms_and_json_are_read() {
        let form =
            payload("application/x-www-form-urlencoded", b"payload=%7B%22type%22%3A%22block_actions%22%7D")
                .unwrap();
        assert_eq!(form["type"], "block_actions");
        assert_eq!(
            payload("application/x-www-form-urlencoded", b"command=%2Fcaipe&text=a+b").unwrap()["text"],
            "a b"
        );
        assert_eq!(payload("application/json; charset=utf-8", b"{\"type\":\"x\"}").unwrap()["type"], "x");
        assert_eq!(payload("text/plain", b"x"), None);
    }
}
