//! `/`, the cards, `/health`, `/ready`, `/tools`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use caipe_a2a::server::{self, Agent as A2aAgent, ServerOptions};
use serde_json::{Map, Value, json};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowMethods, CorsLayer};

use super::auth::{self, Guard};
use crate::agents::Roster;

/// What the routes are made of.
pub struct Site {
    /// Who answers A2A.
    pub agent: Arc<dyn A2aAgent>,
    /// Who is there to be asked.
    pub roster: Arc<Roster>,
    /// Who may come in.
    pub guard: Guard,
    /// Web origins that browsers may call from.
    pub origins: Vec<HeaderValue>,
}

/// All routes.
pub fn router(site: Site) -> Router {
    let about = Router::new()
        .route("/health", get(|| async { Json(json!({"status": "ok"})) }))
        .route("/ready", get(ready))
        .route("/tools", get(tools))
        .with_state(site.roster);
    let cors = CorsLayer::new()
        .allow_origin(site.origins)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request());
    server::router(site.agent, ServerOptions::default())
        .merge(about)
        .layer(middleware::from_fn_with_state(site.guard, auth::check))
        .layer(cors)
        .layer(CatchPanicLayer::new())
}

/// 200 when a question can be answered, else 503 with every reason.
async fn ready(State(roster): State<Arc<Roster>>) -> Response {
    let status = roster.status();
    let code = if status.reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(json!({"ready": status.reasons.is_empty(), "reasons": status.reasons}))).into_response()
}

/// The tools by agent (upstream contract 1.1).
async fn tools(State(roster): State<Arc<Roster>>) -> Json<Value> {
    let agents = roster.status().agents;
    let by_agent: Map<String, Value> =
        agents.into_iter().map(|agent| (agent.name, agent.tools.into())).collect();
    Json(json!({ "tools": by_agent }))
}
