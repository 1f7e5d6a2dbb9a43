//! The HTTP side: routes, headers, limits.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header, request::Parts};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::agent::{Agent, CallContext};
use super::cards::{self, Cards};
use super::dispatch::{self, Hints};
use crate::card::{self, CardMode};
use crate::error::A2aError;
use crate::version::ProtocolVersion;

/// How to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOptions {
    /// Largest request body in bytes.
    pub body_limit: usize,
    /// How long a request body may take to arrive.
    pub body_timeout: Duration,
    /// After how long without an event a stream says that it is alive.
    pub keep_alive: Duration,
    /// Whether to refuse requests of 0.3 without `jsonrpc` and `kind`, which CAIPE's clients leave out.
    pub strict_v0_3: bool,
    /// Whether to take methods of 1.0 without an `A2A-Version` header.
    pub lenient_version: bool,
    /// Which card to show.
    pub card: CardMode,
    /// How long a client may keep the card.
    pub card_max_age: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            body_limit: 10 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            strict_v0_3: false,
            lenient_version: false,
            card: CardMode::Negotiate,
            card_max_age: Duration::from_mins(1),
        }
    }
}

pub(super) struct Server {
    pub(super) agent: Arc<dyn Agent>,
    pub(super) options: ServerOptions,
    pub(super) cards: Cards,
}

/// The routes of an agent: JSON-RPC at `/` and the card at its two well-known paths.
pub fn router(agent: Arc<dyn Agent>, options: ServerOptions) -> Router {
    let server = Arc::new(Server { agent, options, cards: Cards::default() });
    Router::new()
        .route("/", post(rpc))
        .route(card::PATH, get(cards::serve))
        .route(card::OLD_PATH, get(cards::serve))
        .with_state(server)
}

async fn rpc(State(server): State<Arc<Server>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let options = &server.options;
    if let Err(media_type) = check_content_type(&parts.headers) {
        let error = A2aError::ContentTypeNotSupported(format!("{media_type}; send application/json"));
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, dispatch::refuse(&error)).into_response();
    }
    let body = match super::body::read(body, options.body_limit, options.body_timeout).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    let hints = hints(&parts);
    let agent = Arc::clone(&server.agent);
    dispatch::serve(agent, options, hints, context(parts), &body).await
}

/// An absent type is taken for JSON.
fn check_content_type(headers: &HeaderMap) -> Result<(), String> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let text = String::from_utf8_lossy(value.as_bytes());
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/json" | "application/a2a+json" => Ok(()),
        _ => Err(essence.chars().take(80).collect()),
    }
}

fn hints(parts: &Parts) -> Hints {
    let accept = text(&parts.headers, &header::ACCEPT).unwrap_or_default();
    let last = text(&parts.headers, &HeaderName::from_static("last-event-id"));
    Hints {
        version: version(&parts.headers, &parts.uri),
        accepts_stream: accept.contains("text/event-stream"),
        last_event_id: last.and_then(|id| id.trim().parse().ok()),
    }
}

/// The version that a client says it speaks: in a header, else in the query (1.0, section 3.6.1).
pub(super) fn version(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let header = text(headers, &HeaderName::from_static(ProtocolVersion::HEADER)).map(str::to_owned);
    let query = || {
        let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
        let mut versions = pairs.filter(|(name, _)| name.eq_ignore_ascii_case(ProtocolVersion::HEADER));
        versions.next().map(|(_, value)| value.to_owned())
    };
    header.or_else(query)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn context(parts: Parts) -> CallContext {
    let lists =
        ["a2a-extensions", "x-a2a-extensions"].into_iter().flat_map(|name| parts.headers.get_all(name));
    let uris = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
    let declared = uris.map(str::trim).filter(|uri| !uri.is_empty()).map(str::to_owned).collect();
    CallContext {
        version: ProtocolVersion::V0_3,
        declared_extensions: declared,
        headers: parts.headers,
        extensions: parts.extensions,
    }
}
