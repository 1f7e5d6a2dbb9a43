//! Socket Mode: events over a WebSocket that the bot opens.

use std::time::Duration;

use base64::Engine as _;
use futures::{SinkExt, StreamExt};
use reqwest::Upgraded;
use serde_json::{Value, json};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message as Frame, Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;

use crate::accept::Reply;
use crate::api::{Api, ApiError};
use crate::event::Incoming;
use crate::http::Endpoints;
use crate::state::Bot;

/// The wait before the first reconnect, and the longest one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long a connection may be silent. Slack sends a ping about every ten seconds.
const SILENCE: Duration = Duration::from_mins(1);
/// How long opening a connection may take.
const OPEN: Duration = Duration::from_secs(15);
/// The largest message, in bytes.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Why a connection ended.
enum Closed {
    /// Slack asks for a new connection, as it does every few hours.
    Refresh,
    Lost(String),
    Stopped,
}

/// Receives events until `shutdown`.
///
/// # Errors
/// If Slack rejects the app token.
pub(crate) async fn run(
    bot: &Bot,
    api: &Api,
    endpoints: &Endpoints,
    shutdown: &CancellationToken,
) -> Result<(), ApiError> {
    let mut wait = FIRST_WAIT;
    loop {
        let reason = match open(api).await {
            Ok(socket) => {
                tracing::info!("connected to Slack");
                endpoints.set_ready(true);
                wait = FIRST_WAIT;
                match receive(bot, socket, shutdown).await {
                    Closed::Stopped => return Ok(()),
                    Closed::Refresh => continue,
                    Closed::Lost(reason) => reason,
                }
            }
            Err(error) if error.is_unauthorized() => return Err(error),
            Err(error) => {
                if let ApiError::RateLimited { wait: limit, .. } = &error {
                    wait = wait.max(*limit);
                }
                error.to_string()
            }
        };
        endpoints.set_ready(false);
        let pause = wait.mul_f32(0.5 + fastrand::f32() / 2.0);
        tracing::warn!(reason, "lost the connection to Slack; reconnecting in {:.1} s", pause.as_secs_f32());
        tokio::select! {
            () = tokio::time::sleep(pause) => wait = (wait * 2).min(LONGEST_WAIT),
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}

async fn open(api: &Api) -> Result<WebSocketStream<Upgraded>, ApiError> {
    let opened = api.call("apps.connections.open", &json!({})).await?;
    let url = opened["url"].as_str().unwrap_or_default();
    let connect = connect(api.http(), url);
    let socket = tokio::time::timeout(OPEN, connect).await.unwrap_or_else(|_| Err("it timed out".to_owned()));
    socket.map_err(|reason| ApiError::Transport { method: "the WebSocket".to_owned(), reason })
}

/// Opens a WebSocket on an upgraded HTTP connection (RFC 6455).
async fn connect(http: &reqwest::Client, url: &str) -> Result<WebSocketStream<Upgraded>, String> {
    let url = url.strip_prefix("ws").map(|rest| format!("http{rest}")).ok_or("Slack gave no address")?;
    let key = base64::engine::general_purpose::STANDARD.encode(uuid::Uuid::new_v4().as_bytes());
    let request = http
        .get(url)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", &key);
    let response = request.send().await.map_err(|error| error.without_url().to_string())?;
    let accepted = response.headers().get("sec-websocket-accept").and_then(|value| value.to_str().ok());
    if response.status().as_u16() != 101 || accepted != Some(derive_accept_key(key.as_bytes()).as_str()) {
        return Err(format!("it answered with HTTP {} instead of a WebSocket", response.status().as_u16()));
    }
    let upgraded = response.upgrade().await.map_err(|error| error.without_url().to_string())?;
    let config =
        WebSocketConfig::default().max_message_size(Some(MOST_BYTES)).max_frame_size(Some(MOST_BYTES));
    Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
}

async fn receive(bot: &Bot, mut socket: WebSocketStream<Upgraded>, shutdown: &CancellationToken) -> Closed {
    loop {
        let frame = tokio::select! {
            frame = tokio::time::timeout(SILENCE, socket.next()) => frame,
            () = shutdown.cancelled() => {
                drop(socket.close(None).await);
                return Closed::Stopped;
            }
        };
        let frame = match frame {
            Err(_) => return Closed::Lost(format!("it was silent for {} s", SILENCE.as_secs())),
            Ok(None) => return Closed::Lost("it was closed".to_owned()),
            Ok(Some(Err(error))) => return Closed::Lost(error.to_string()),
            Ok(Some(Ok(frame))) => frame,
        };
        let Frame::Text(text) = frame else { continue };
        let Ok(envelope) = serde_json::from_str::<Value>(&text) else {
            tracing::warn!("ignored a message of Slack that is not JSON");
            continue;
        };
        if envelope["type"] == "disconnect" {
            drop(socket.close(None).await);
            return Closed::Refresh;
        }
        let Some(answer) = acknowledgement(bot, &envelope).await else { continue };
        if let Err(error) = socket.send(Frame::text(answer.to_string())).await {
            return Closed::Lost(error.to_string());
        }
    }
}

/// The answer to an envelope; `None` if Slack should deliver it again.
async fn acknowledgement(bot: &Bot, envelope: &Value) -> Option<Value> {
    let id = envelope["envelope_id"].as_str()?;
    let payload = &envelope["payload"];
    let incoming = match envelope["type"].as_str() {
        Some("events_api") => Incoming::of_event(payload),
        Some("interactive") => Incoming::of_interaction(payload),
        Some("slash_commands") => Some(Incoming::of_command(payload)),
        _ => None,
    };
    let mut answer = json!({"envelope_id": id});
    let Some(incoming) = incoming else {
        tracing::debug!(kind = envelope["type"].as_str(), "ignored an envelope");
        return Some(answer);
    };
    match bot.accept(incoming).await {
        Reply::Accepted(None) => {}
        Reply::Accepted(Some(response)) => answer["payload"] = response,
        Reply::Busy => return None,
    }
    Some(answer)
}
