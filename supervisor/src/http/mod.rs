//! The HTTP server: A2A, health, status.

mod auth;
mod listen;
mod listing;
mod memory;
mod metrics;
mod origin;
mod routes;
mod skills;
mod status;
mod task_api;

#[cfg(test)]
pub(crate) use auth::check;
pub(crate) use auth::has_key;
pub use auth::{Guard, GuardError, Keyring, RulesError, SHORTEST_KEY, TokenRules};
pub use listen::{Limits, serve};
pub(crate) use metrics::{METRICS_LIMITS, metrics_router};
pub use origin::{OriginError, Origins};
pub(crate) use origin::{Pages, check as check_origin};
pub use routes::{AppState, router};
pub use skills::SkillsApi;
pub use task_api::TaskApi;
