//! The endpoint: `POST`, `GET` and `DELETE` (2025-11-25, "streamable HTTP"; 2026-07-28, "HTTP").

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router, middleware};
use bytes::Bytes;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::child::{Asked, Child};
use super::children::{Children, Session};
use super::launch::Launch;
use super::message::{DISCOVER, INITIALIZE, Incoming, Kind, Message};
use super::refusal::Refusal;
use super::stream::{self, EVENTS};
use crate::http::{self, Limits, Origins, Pages, check_origin};

/// The largest message of a client.
const MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// Most connections at a time: a client has a few.
const CONNECTIONS: usize = 512;
/// How long clients may take to read the last messages.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The header that names the session.
const SESSION: &str = "mcp-session-id";
/// The header that names the protocol version.
const VERSION: &str = "mcp-protocol-version";

/// What is served.
#[derive(Debug)]
pub struct Bridge {
    /// What is started for a client.
    pub launch: Launch,
    /// The path of the endpoint.
    pub path: String,
    /// Most children at a time.
    pub most: usize,
}

/// Serves until `stop`; returns when every child is gone.
pub async fn serve(listener: TcpListener, bridge: Bridge, stop: CancellationToken) {
    let children = Arc::new(Children::new(bridge.launch, bridge.most, CancellationToken::new()));
    children.warm_up().await;
    let pages = Pages::new(Origins::default(), true);
    let routes = Router::new()
        .route(&bridge.path, post(take).get(listen).delete(end))
        .layer(DefaultBodyLimit::max(MESSAGE_BYTES))
        .layer(middleware::from_fn_with_state(pages, check_origin))
        .with_state(children.clone());
    let limits = Limits::fitting();
    let limits = Limits { connections: limits.connections.min(CONNECTIONS), ..limits };
    let server = tokio::spawn(http::serve(listener, routes, limits, stop.clone()));
    stop.cancelled().await;
    // Their ends are the ends of all streams, and so of the connections.
    children.shutdown().await;
    drop(timeout(LAST_WORDS, server).await);
}

async fn take(
    State(children): State<Arc<Children>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    if !says(&headers, header::CONTENT_TYPE, &["application/json"]) {
        let reason = "send a message as application/json";
        return Err(Refusal::medium(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
    }
    if !says(&headers, header::ACCEPT, &[EVENTS, "*/*"]) {
        let reason = "accept application/json and text/event-stream, in which answers come";
        return Err(Refusal::medium(StatusCode::NOT_ACCEPTABLE, reason));
    }
    let incoming = Incoming::parse(&body)?;
    match session_id(&headers) {
        Some(id) => in_session(&*children.session(id)?, &headers, incoming).await,
        None if incoming.method == INITIALIZE => initialize(&children, incoming).await,
        None if incoming.is_stateless() => stateless(&children, &headers, incoming).await,
        None => Err(Refusal::invalid(format!(
            "begin a session with {INITIALIZE} and name it by the header {SESSION}; or say by the member \
             _meta which version of the stateless protocol you speak"
        ))),
    }
}

/// Begins a session, with a child of its own.
async fn initialize(children: &Children, incoming: Incoming) -> Result<Response, Refusal> {
    let Kind::Request(id) = &incoming.kind else {
        return Err(Refusal::invalid(format!("{INITIALIZE} is a request")));
    };
    let child = children.for_session().await.map_err(|refusal| refusal.of(id))?;
    let answer = only_answer(child.ask(id, incoming.message, false).await?).await?;
    let Some(result) = answer.get("result") else {
        child.stop();
        return Ok(Json(answer).into_response());
    };
    let version = OnceLock::new();
    if let Some(agreed) = result.get("protocolVersion").and_then(Value::as_str) {
        version.get_or_init(|| agreed.to_owned());
    }
    let session = children.open(Session { child, version });
    let mut response = Json(answer).into_response();
    if let Ok(session) = HeaderValue::from_str(&session) {
        response.headers_mut().insert(SESSION, session);
    }
    Ok(response)
}

async fn in_session(session: &Session, headers: &HeaderMap, incoming: Incoming) -> Result<Response, Refusal> {
    let header = headers.get(VERSION).and_then(|version| version.to_str().ok());
    if let (Some(header), Some(agreed)) = (header, session.version.get())
        && header != agreed
    {
        return Err(Refusal::invalid(format!("this session agreed on the protocol version {agreed}")));
    }
    forward(&session.child, incoming).await
}

/// A message of the stateless era.
async fn stateless(
    children: &Children,
    headers: &HeaderMap,
    incoming: Incoming,
) -> Result<Response, Refusal> {
    incoming.check_headers(headers)?;
    let Kind::Request(id) = &incoming.kind else {
        // What is cancelled shows in the closed stream; no other notification comes this way.
        return Ok(StatusCode::ACCEPTED.into_response());
    };
    let child = children.shared().await.map_err(|refusal| refusal.of(id))?;
    if incoming.method != DISCOVER {
        return forward(&child, incoming).await;
    }
    let answer = only_answer(child.ask(id, incoming.message, false).await?).await?;
    if is_of_sessions(&answer) {
        children.retire(&child);
    }
    Ok(Json(answer).into_response())
}

/// Whether a server that answers the first question so knows only the era of sessions. Refusals of the other era have codes of
/// their own (protocol 2026-07-28, "error codes").
fn is_of_sessions(answer: &Message) -> bool {
    let code = answer.get("error").and_then(|error| error.get("code")).and_then(Value::as_i64);
    code.is_some_and(|code| !(-32029..=-32020).contains(&code))
}

/// Passes a message on to its child; the answer to a request comes as a stream.
async fn forward(child: &Arc<Child>, incoming: Incoming) -> Result<Response, Refusal> {
    if let Kind::Request(id) = &incoming.kind {
        return Ok(stream::response(child.ask(id, incoming.message, true).await?));
    }
    let cancelled = incoming.message.get("params").and_then(|params| params.get("requestId")).cloned();
    child.tell(incoming.message).await?;
    if let Some(id) = cancelled.filter(|_| incoming.method == "notifications/cancelled") {
        child.cancelled(&id);
    }
    Ok(StatusCode::ACCEPTED.into_response())
}

/// The answer, where nothing but it is waited for.
async fn only_answer(mut asked: Asked) -> Result<Message, Refusal> {
    let answer = asked.inlet.recv().await;
    answer.ok_or_else(|| Refusal::unavailable("the tool server ended without an answer"))
}

async fn listen(State(children): State<Arc<Children>>, headers: HeaderMap) -> Result<Response, Refusal> {
    if !says(&headers, header::ACCEPT, &[EVENTS]) {
        let reason = "accept text/event-stream, which is what comes";
        return Err(Refusal::medium(StatusCode::NOT_ACCEPTABLE, reason));
    }
    let Some(id) = session_id(&headers) else {
        let reason = format!("a stream belongs to a session, named by the header {SESSION}");
        return Err(Refusal::medium(StatusCode::METHOD_NOT_ALLOWED, reason));
    };
    Ok(stream::response(children.session(id)?.child.listen()))
}

async fn end(State(children): State<Arc<Children>>, headers: HeaderMap) -> Result<StatusCode, Refusal> {
    let Some(id) = session_id(&headers) else {
        return Err(Refusal::invalid(format!("name the session by the header {SESSION}")));
    };
    children.end(id)?;
    Ok(StatusCode::NO_CONTENT)
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

/// Whether a header names one of these media types.
fn says(headers: &HeaderMap, name: header::HeaderName, types: &[&str]) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let mut named = values.flat_map(|value| value.split(',')).map(|entry| entry.split(';').next());
    named.any(|entry| {
        let entry = entry.unwrap_or_default().trim();
        types.iter().any(|name| entry.eq_ignore_ascii_case(name))
    })
}
