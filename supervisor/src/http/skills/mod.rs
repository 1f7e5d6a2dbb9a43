//! The API of the skill catalogue, with the paths and shapes of upstream's skills middleware, and its `OpenAPI` document.

mod access;
mod body;
mod catalogue;
mod document;
mod error;
mod hub;
mod keys;
mod model;
mod page;

use std::sync::Arc;

use axum::http::HeaderName;
use axum::routing::{delete, get, post};
use axum::{Router, middleware};
use caipe_skills::{ApiKeys, SkillService};
use tokio::sync::Semaphore;

use super::auth::Guard;
use crate::config::Environment;

/// Most bytes of a request: a skill with its files, as JSON.
const REQUEST_BYTES: usize = 4 << 20;

/// Previews of repositories at a time.
const PREVIEWS: usize = 2;

/// The state of the routes.
#[derive(Clone)]
pub struct SkillsApi {
    pub service: Arc<SkillService>,
    /// The keys of the catalogue; none if there is no directory for them.
    pub keys: Option<Arc<ApiKeys>>,
    /// The header of such a key (`CAIPE_CATALOG_API_KEY_HEADER`).
    pub key_header: HeaderName,
    /// For the tokens of repositories.
    pub env: Environment,
    previews: Arc<Semaphore>,
}

impl SkillsApi {
    /// The state with these keys.
    pub fn new(
        service: Arc<SkillService>,
        keys: Option<Arc<ApiKeys>>,
        key_header: HeaderName,
        env: Environment,
    ) -> Self {
        Self { service, keys, key_header, env, previews: Arc::new(Semaphore::new(PREVIEWS)) }
    }
}

/// The routes, which authenticate requests themselves: a key of the catalogue replaces the credential of the server where it
/// suffices.
pub(super) fn router(api: SkillsApi, guard: Guard) -> Router {
    let access = access::Access { api: api.clone(), guard };
    Router::new()
        .route("/skills", get(catalogue::list).post(catalogue::add))
        .route("/skills/refresh", post(catalogue::refresh))
        .route("/skills/scan-content", post(hub::scan_content))
        .route("/skills/{id}", get(catalogue::show).delete(catalogue::remove))
        .route("/internal/supervisor/skills-status", get(catalogue::status))
        .route("/catalog-api-keys", post(keys::create).get(keys::list))
        .route("/catalog-api-keys/{key_id}", delete(keys::revoke))
        .route("/skill-hubs/crawl", post(hub::crawl))
        .route("/openapi.json", get(document::json))
        .route("/docs", get(page::html))
        .with_state(api)
        .layer(middleware::from_fn_with_state(access, access::check))
}
