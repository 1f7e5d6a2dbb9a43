//! The agents of this process: their instances, their placement, and their migration from one placement to the other.
//!
//! ```text
//! a new specification -> migration_plan (pure: an action for each agent) -> AgentInstances (applies them)
//!                                                                            |  prepare, migrate, drain
//!                                                                            v
//!                                                              Delegates (the snapshot that runs read)
//! ```
//!
//! A new instance is prepared first: its tool servers start, or a remote agent's card is read. Then it replaces the old
//! one in the snapshot. Active delegations end at the old instance, whose tool servers stop afterwards. While a new
//! instance is not ready, the old one stays, and preparing is retried without a limit.

mod builder;
mod doctor;
mod health;
mod in_process;
mod instance;
mod instance_spec;
mod instances;
mod mcp_servers;
mod migration_plan;
mod models;
mod prober;
mod registry;
mod routing_trial;
mod run_trial;
mod trial;

pub use doctor::{Examination, examine};
pub use in_process::InProcessBackend;
pub use mcp_servers::{missing_variables, server_specs};
pub use models::{judge_model, unusable_models};
pub use registry::{AgentRegistry, AgentStatus, RegistryError, RegistryStatus};
pub use routing_trial::RoutingTrial;
pub use run_trial::{OfferedNames, RunOptions, RunTrial};
pub use trial::TrialResult;

#[cfg(test)]
#[path = "tests/backend_contract/mod.rs"]
mod backend_contract;
