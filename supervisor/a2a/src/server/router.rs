//! The HTTP routes of the server.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{StatusCode, Uri};
use axum::middleware::map_request;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::agent::Agent;
use super::body::with_retry_after;
use super::headers::{Hints, activated, check_content_type, context};
use super::state::{Server, ServerOptions};
use super::{jsonrpc, rest};
use crate::card;
use crate::error::A2aError;

/// The routes of an agent: JSON-RPC at `/`, the card at its two well-known paths, and the HTTP+JSON binding
/// beside them: 1.0 at `/message:send`, `/tasks` and so on, also below one segment for a tenant, and 0.3
/// below `/v1`.
pub fn router(agent: Arc<dyn Agent>, options: ServerOptions) -> Router {
    let server = Arc::new(Server::new(agent, options));
    let routes = Router::new()
        .route("/", post(rpc))
        .route(card::PATH, get(serve_card))
        .route(card::OLD_PATH, get(serve_card))
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

async fn serve_card(State(server): State<Arc<Server>>, request: Request) -> Response {
    let options = &server.options;
    let response = server.cards.respond(
        &server.agent.card(),
        options.card,
        options.card_max_age,
        request.headers(),
        request.uri(),
    );
    response.unwrap_or_else(|error| {
        let error = A2aError::Internal(format!("failed to encode the card: {error}"));
        (StatusCode::INTERNAL_SERVER_ERROR, jsonrpc::refuse(&error)).into_response()
    })
}

async fn rpc(State(server): State<Arc<Server>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if let Err(media_type) = check_content_type(&parts.headers) {
        let error = A2aError::ContentTypeNotSupported(format!("{media_type}; send application/json"));
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, jsonrpc::refuse(&error)).into_response();
    }
    let body = match server.body_reader.read(body).await {
        Ok(body) => body,
        Err(error) => {
            let refusal = jsonrpc::refuse(&A2aError::InvalidRequest(error.to_string()));
            return with_retry_after((error.status(), refusal).into_response());
        }
    };
    let hints = Hints::of(&parts);
    let (response, call) = jsonrpc::serve(&server, hints, context(parts), body).await;
    activated(response, &call, &server.agent.card())
}
