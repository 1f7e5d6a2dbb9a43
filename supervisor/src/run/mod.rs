//! Runs: the engine's decisions, made durable and carried out.

mod conversations;
mod driver;
mod journal;
mod live;
mod perform;
mod service;
mod start;

pub use driver::{Batch, Driver, RunInfo, Sink, SinkError};
pub use service::{RunError, Runs};
