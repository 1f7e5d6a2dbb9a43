//! The HTTP routes and the options of the server.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{StatusCode, Uri};
use axum::middleware::map_request;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::agent::Agent;
use super::cards::{self, Cards};
use super::headers::{Hints, activated, check_content_type, context};
use super::{jsonrpc, rest};
use crate::card::{self, CardMode};
use crate::error::A2aError;

/// The options of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "switches that are set independently of each other")]
pub struct ServerOptions {
    /// The largest request body in bytes.
    pub body_limit: usize,
    /// How long a request body may take to arrive.
    pub body_timeout: Duration,
    /// The time without an event after which a stream sends a keep-alive comment.
    pub keep_alive: Duration,
    /// Whether to reject requests of 0.3 without `jsonrpc` and `kind`, which CAIPE's clients omit.
    pub strict_v0_3: bool,
    /// Whether to accept methods of 1.0 without an `A2A-Version` header.
    pub lenient_version: bool,
    /// Whether to accept messages of 1.0 without a `messageId`, and with `taskId` and `contextId` beside the
    /// message instead of in it.
    pub lenient_messages: bool,
    /// Whether to reject parts of a media type that is not among the card's default input modes.
    pub strict_input_modes: bool,
    /// Which card to serve.
    pub card: CardMode,
    /// How long a client may cache the card.
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
    let routes = Router::new()
        .route("/", post(rpc))
        .route(card::PATH, get(cards::serve))
        .route(card::OLD_PATH, get(cards::serve))
        .merge(rest::routes())
        .with_state(server);
    normalize_paths(routes)
}

/// Treats several slashes at the start of a path as one: a client that appends a path to a URL with a trailing slash
/// requests `//message:send`.
///
/// [`router`] does this for its own routes. If other layers read the path, for example to authenticate, pass the
/// outermost router here, so that all of them see the same path.
pub fn normalize_paths(routes: Router) -> Router {
    // Layers of a router run after it has chosen a route, so a second router goes around it.
    Router::new().fallback_service(routes).layer(map_request(normalize_path))
}

async fn normalize_path(mut request: Request) -> Request {
    if let Some(uri) = with_one_slash(request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

fn with_one_slash(uri: &Uri) -> Option<Uri> {
    let path = uri.path_and_query()?.as_str();
    let rest = path.strip_prefix("//")?.trim_start_matches('/');
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("/{rest}")).ok()?);
    Uri::from_parts(parts).ok()
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
