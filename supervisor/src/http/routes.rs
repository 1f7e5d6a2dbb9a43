//! `/`, the cards, `/health`, `/ready`, `/tools`.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use caipe_a2a::server::{self, Agent as A2aAgent, ServerOptions};
use caipe_store::Store;
use serde_json::{Map, Value, json};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowMethods, CorsLayer};

use super::auth::{self, Guard};
use super::origin::{self, Pages};
use crate::agents::Roster;

/// How long the store may take to say that it is well; a kubelet asks again soon.
const STORE_DEADLINE: Duration = Duration::from_millis(800);

/// What the routes are made of.
pub struct Site {
    /// Who answers A2A.
    pub agent: Arc<dyn A2aAgent>,
    /// Who is there to be asked.
    pub roster: Arc<Roster>,
    /// Where conversations are kept.
    pub store: Arc<dyn Store>,
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
        .with_state(About { roster: site.roster, store: site.store });
    let pages = Pages::new(&site.origins, site.guard.is_loopback_only());
    let cors = CorsLayer::new()
        .allow_origin(site.origins)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request());
    server::router(site.agent, ServerOptions::default())
        .merge(about)
        .layer(middleware::from_fn_with_state(site.guard, auth::check))
        .layer(cors)
        .layer(middleware::from_fn_with_state(pages, origin::check))
        .layer(CatchPanicLayer::new())
}

/// What the routes beside A2A tell of.
#[derive(Clone)]
struct About {
    roster: Arc<Roster>,
    store: Arc<dyn Store>,
}

/// 200 when a question can be answered, else 503 with every reason.
async fn ready(State(about): State<About>) -> Response {
    let mut reasons = about.roster.status().reasons;
    match tokio::time::timeout(STORE_DEADLINE, about.store.healthy()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => reasons.push(error.to_string()),
        Err(_) => reasons.push(format!("the {} store does not answer", about.store.backend())),
    }
    let code = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(json!({"ready": reasons.is_empty(), "reasons": reasons}))).into_response()
}

/// The tools by agent (upstream contract 1.1), and why those are missing that are.
async fn tools(State(about): State<About>) -> Json<Value> {
    let (mut tools, mut faults) = (Map::new(), Map::new());
    for agent in about.roster.status().agents {
        if !agent.faults.is_empty() {
            faults.insert(agent.name.clone(), agent.faults.into());
        }
        tools.insert(agent.name, agent.tools.into());
    }
    Json(json!({ "tools": tools, "faults": faults }))
}
