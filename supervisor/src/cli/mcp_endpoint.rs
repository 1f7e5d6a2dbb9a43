//! What protects an MCP endpoint of this program: a key, or loopback.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use secrecy::SecretString;

use crate::http::{Limits, Origins, Pages, check_origin, has_key};

/// The limit of connections; a client has a few.
const MAX_CONNECTIONS: usize = 512;

/// The routes for requests with the key, if there is one, and for requests of no foreign web page.
pub(super) fn guarded(routes: Router, key: Option<SecretString>) -> Router {
    let pages = Pages::new(Origins::default(), key.is_none());
    let routes = routes.layer(middleware::from_fn_with_state(pages, check_origin));
    routes.layer(middleware::from_fn_with_state(key, check_key))
}

/// The limits of the listener.
pub(super) fn limits() -> Limits {
    let limits = Limits::fitting();
    Limits { connections: limits.connections.min(MAX_CONNECTIONS), ..limits }
}

/// Rejects a request without the key, if there is one.
async fn check_key(State(key): State<Option<SecretString>>, request: Request, next: Next) -> Response {
    if key.is_none() || has_key(request.headers(), key.as_ref()) {
        return next.run(request).await;
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, challenge, "send the key of this endpoint as a bearer token").into_response()
}
