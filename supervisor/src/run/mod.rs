//! Runs: the engine's decisions are committed, shown and carried out.

mod active_tasks;
mod approvers;
mod asking_agents;
mod caller;
mod cancel;
mod client_results;
mod control;
mod conversations;
mod driver;
mod effects;
mod error;
mod event_log;
mod facts;
mod leases;
mod log_writer;
mod messages;
mod model_turn;
mod outbox;
mod pauses;
mod pending_interactions;
mod recovery;
mod service;
mod start;
mod task_reader;

pub(crate) use caller::SUBJECT;
pub use caller::{Caller, Person};
pub use driver::{Batch, Driver, Sink, SinkError, Withdrawal};
pub use error::RunError;
pub use facts::{NO_USER, fact_owner};
pub use service::{LOG_MEMORY, Runs};
