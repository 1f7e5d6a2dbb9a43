//! Runs: the engine's decisions, made durable and carried out.

mod conversations;
mod driver;
mod journal;
mod perform;
mod service;

pub use driver::{Batch, Driver, RunInfo, Sink, SinkError};
pub use service::{RunError, Runs};
