//! The HTTP side: routes, headers, limits.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::agent::Agent;
use super::cards::{self, Cards};
use super::headers::{Hints, activated, check_content_type, context};
use super::{jsonrpc, rest};
use crate::card::{self, CardMode};
use crate::error::A2aError;

/// How to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "switches that are set independently of each other")]
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
    /// Whether to take messages of 1.0 without a `messageId`, and with `taskId` and `contextId` beside the
    /// message instead of in it.
    pub lenient_messages: bool,
    /// Whether to refuse parts of a media type that the card's default input modes leave out.
    pub strict_input_modes: bool,
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
            lenient_messages: false,
            strict_input_modes: false,
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

/// The routes of an agent: JSON-RPC at `/`, the card at its two well-known paths, and the HTTP+JSON binding
/// beside them: 1.0 at `/message:send`, `/tasks` and so on, also below one segment for a tenant, and 0.3
/// below `/v1`.
pub fn router(agent: Arc<dyn Agent>, options: ServerOptions) -> Router {
    let server = Arc::new(Server { agent, options, cards: Cards::default() });
    Router::new()
        .route("/", post(rpc))
        .route(card::PATH, get(cards::serve))
        .route(card::OLD_PATH, get(cards::serve))
        .merge(rest::routes())
        .with_state(server)
}

async fn rpc(State(server): State<Arc<Server>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let options = &server.options;
    if let Err(media_type) = check_content_type(&parts.headers) {
        let error = A2aError::ContentTypeNotSupported(format!("{media_type}; send application/json"));
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, jsonrpc::refuse(&error)).into_response();
    }
    let body = match super::body::read(body, options.body_limit, options.body_timeout).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    let hints = Hints::of(&parts);
    let (response, call) = jsonrpc::serve(&server, hints, context(parts), &body).await;
    activated(response, &call, &server.agent.card())
}
