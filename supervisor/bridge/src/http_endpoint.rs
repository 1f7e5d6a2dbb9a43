//! The HTTP endpoint: `POST`, `GET` and `DELETE` (2025-11-25, "streamable HTTP"; 2026-07-28, "HTTP").

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::child::{Child, ChildCommand, MessageStream};
use super::child_pool::{ChildPool, Session};
use super::error::BridgeError;
use super::event_stream;
use super::message::{DISCOVER, INITIALIZE, Incoming, Kind, Message};
use super::process::MAX_MESSAGE_BYTES;

const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";

/// Serves a stdio server over streamable HTTP.
#[derive(Debug)]
pub struct Bridge {
    pool: Arc<ChildPool>,
}

impl Bridge {
    /// Starts the first child; at most `max_children` run at a time.
    pub async fn start(command: ChildCommand, max_children: usize) -> Self {
        let pool = Arc::new(ChildPool::new(command, max_children, CancellationToken::new()));
        pool.start_spare().await;
        Self { pool }
    }

    /// The endpoint at this path. It authenticates no client: serve it on loopback only, and reject foreign web pages.
    pub fn routes(&self, path: &str) -> Router {
        Router::new()
            .route(path, post(post_message).get(open_stream).delete(end_session))
            .layer(DefaultBodyLimit::max(MAX_MESSAGE_BYTES))
            .with_state(self.pool.clone())
    }

    /// Stops all children, which ends all streams.
    pub async fn shutdown(&self) {
        self.pool.shutdown().await;
    }
}

async fn post_message(
    State(pool): State<Arc<ChildPool>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, BridgeError> {
    if !has_media_type(&headers, header::CONTENT_TYPE, &["application/json"]) {
        let reason = "send a message as application/json";
        return Err(BridgeError::unsupported(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
    }
    if !has_media_type(&headers, header::ACCEPT, &[event_stream::MEDIA_TYPE, "*/*"]) {
        let reason = "accept application/json and text/event-stream, the media types of answers";
        return Err(BridgeError::unsupported(StatusCode::NOT_ACCEPTABLE, reason));
    }
    let incoming = Incoming::parse(&body)?;
    match session_id(&headers) {
        Some(id) => in_session(&*pool.session(id)?, &headers, incoming).await,
        None if incoming.method == INITIALIZE => initialize(&pool, incoming).await,
        None if incoming.is_stateless() => stateless(&pool, &headers, incoming).await,
        None => Err(BridgeError::invalid_request(format!(
            "begin a session with {INITIALIZE} and name it by the header {SESSION_HEADER}; or name the version of the \
             stateless protocol by the member _meta"
        ))),
    }
}

/// Begins a session, with a child of its own.
async fn initialize(pool: &ChildPool, incoming: Incoming) -> Result<Response, BridgeError> {
    let Kind::Request(id) = &incoming.kind else {
        return Err(BridgeError::invalid_request(format!("{INITIALIZE} is a request")));
    };
    let child = pool.child_for_session().await.map_err(|error| error.for_request(id))?;
    let answer = only_answer(child.request(id, incoming.message, false).await?).await?;
    let Some(result) = answer.get("result") else {
        child.stop();
        return Ok(Json(answer).into_response());
    };
    let version = result.get("protocolVersion").and_then(Value::as_str).map(str::to_owned);
    let session = pool.open_session(Session { child, version });
    let mut response = Json(answer).into_response();
    if let Ok(session) = HeaderValue::from_str(&session) {
        response.headers_mut().insert(SESSION_HEADER, session);
    }
    Ok(response)
}

async fn in_session(
    session: &Session,
    headers: &HeaderMap,
    incoming: Incoming,
) -> Result<Response, BridgeError> {
    let header = headers.get(VERSION_HEADER).and_then(|version| version.to_str().ok());
    if let (Some(header), Some(agreed)) = (header, &session.version)
        && header != agreed
    {
        return Err(BridgeError::invalid_request(format!(
            "this session agreed on the protocol version {agreed}"
        )));
    }
    forward(&session.child, incoming).await
}

async fn stateless(
    pool: &ChildPool,
    headers: &HeaderMap,
    incoming: Incoming,
) -> Result<Response, BridgeError> {
    incoming.check_headers(headers)?;
    let Kind::Request(id) = &incoming.kind else {
        // A client cancels by closing the stream and sends no other notification.
        return Ok(StatusCode::ACCEPTED.into_response());
    };
    let child = pool.shared_child().await.map_err(|error| error.for_request(id))?;
    if incoming.method != DISCOVER {
        return forward(&child, incoming).await;
    }
    let answer = only_answer(child.request(id, incoming.message, false).await?).await?;
    if requires_session(&answer) {
        pool.keep_for_session(&child);
    }
    Ok(Json(answer).into_response())
}

/// Whether this answer to `server/discover` shows that the server only knows sessions. The errors of the stateless era have
/// codes of their own (protocol 2026-07-28, "error codes").
fn requires_session(answer: &Message) -> bool {
    let code = answer.get("error").and_then(|error| error.get("code")).and_then(Value::as_i64);
    code.is_some_and(|code| !(-32029..=-32020).contains(&code))
}

/// Forwards a message to its child. The answer to a request is a stream.
async fn forward(child: &Arc<Child>, incoming: Incoming) -> Result<Response, BridgeError> {
    if let Kind::Request(id) = &incoming.kind {
        return Ok(event_stream::response(child.request(id, incoming.message, true).await?));
    }
    let cancelled = incoming.message.get("params").and_then(|params| params.get("requestId")).cloned();
    child.send(incoming.message).await?;
    if let Some(id) = cancelled.filter(|_| incoming.method == "notifications/cancelled") {
        child.cancel(&id);
    }
    Ok(StatusCode::ACCEPTED.into_response())
}

async fn only_answer(mut stream: MessageStream) -> Result<Message, BridgeError> {
    let answer = stream.messages.recv().await;
    answer.ok_or_else(|| BridgeError::unavailable("the tool server ended without an answer"))
}

async fn open_stream(
    State(pool): State<Arc<ChildPool>>,
    headers: HeaderMap,
) -> Result<Response, BridgeError> {
    if !has_media_type(&headers, header::ACCEPT, &[event_stream::MEDIA_TYPE]) {
        let reason = "accept text/event-stream, the media type of the stream";
        return Err(BridgeError::unsupported(StatusCode::NOT_ACCEPTABLE, reason));
    }
    let Some(id) = session_id(&headers) else {
        let reason = format!("a stream belongs to a session, named by the header {SESSION_HEADER}");
        return Err(BridgeError::unsupported(StatusCode::METHOD_NOT_ALLOWED, reason));
    };
    Ok(event_stream::response(pool.session(id)?.child.listen()))
}

async fn end_session(
    State(pool): State<Arc<ChildPool>>,
    headers: HeaderMap,
) -> Result<StatusCode, BridgeError> {
    let Some(id) = session_id(&headers) else {
        return Err(BridgeError::invalid_request(format!("name the session by the header {SESSION_HEADER}")));
    };
    pool.end_session(id)?;
    Ok(StatusCode::NO_CONTENT)
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_HEADER)?.to_str().ok()
}

fn has_media_type(headers: &HeaderMap, name: header::HeaderName, types: &[&str]) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let mut named = values.flat_map(|value| value.split(',')).map(|entry| entry.split(';').next());
    named.any(|entry| {
        let entry = entry.unwrap_or_default().trim();
        types.iter().any(|name| entry.eq_ignore_ascii_case(name))
    })
}
