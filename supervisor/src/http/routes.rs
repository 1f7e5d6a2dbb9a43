//! `/`, the cards, `/health`, `/ready`, `/tools`, `/workflows`, `/memory`, `/internal/status`, and the skills API.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router, middleware};
use caipe_a2a::server::{self, Agent as A2aAgent, ServerOptions};
use caipe_store::Store;
use serde_json::json;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

use super::auth::{self, Guard};
use super::listen::unavailable;
use super::origin::{self, Origins, Pages};
use super::skills::{self, SkillsApi};
use super::status::{self, About};
use super::{memory, metrics};
use crate::agents::AgentRegistry;
use crate::memory::Memory;
use crate::run::Runs;

/// The state of the routes.
pub struct AppState {
    pub agent: Arc<dyn A2aAgent>,
    pub registry: Arc<AgentRegistry>,
    pub runs: Arc<Runs>,
    /// Whether the process serves a single agent.
    pub alone: bool,
    /// The store of conversations.
    pub store: Arc<dyn Store>,
    /// The store of what agents remember; usually the same.
    pub facts: Arc<dyn Store>,
    /// What agents remember about people; `None` in a process that serves no people.
    pub memory: Option<Memory>,
    /// The skills, and the keys of their catalogue.
    pub skills: SkillsApi,
    /// Authenticates requests.
    pub guard: Guard,
    /// The allowed web origins.
    pub origins: Origins,
}

/// All routes.
pub fn router(state: AppState) -> Router {
    let protocol = server::router(state.agent, ServerOptions::default())
        .layer(middleware::map_response(metrics::count_streams))
        .layer(middleware::from_fn_with_state(state.runs.clone(), admit));
    let about = Router::new()
        .route("/health", get(|| async { Json(json!({"status": "ok"})) }))
        .route("/ready", get(status::ready))
        .route("/tools", get(status::tools))
        .route("/workflows", get(status::workflows))
        .route("/internal/status", get(status::internal))
        .with_state(About {
            registry: state.registry,
            store: state.store,
            facts: state.facts,
            runs: state.runs,
            alone: state.alone,
        });
    let origins = state.origins;
    let pages = Pages::new(origins.clone(), state.guard.is_loopback_only());
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin, _| origins.contains(origin)))
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request());
    let routes = protocol
        .merge(about)
        .merge(state.memory.map(memory::router).unwrap_or_default())
        .layer(middleware::from_fn_with_state(state.guard.clone(), auth::check))
        .merge(skills::router(state.skills, state.guard))
        .layer(cors)
        .layer(middleware::from_fn_with_state(pages, origin::check))
        .layer(CatchPanicLayer::new());
    // Outside of the guard, which compares paths.
    server::normalize_paths(routes)
}

/// Refuses a request of the protocol once the process stops. The client sends it again, and reaches another process.
async fn admit(State(runs): State<Arc<Runs>>, request: Request, next: Next) -> Response {
    match runs.admit_request() {
        // Held until the response begins; the run is counted by then.
        Some(_admitted) => next.run(request).await,
        None => unavailable("the server is stopping: send the request again\n"),
    }
}
