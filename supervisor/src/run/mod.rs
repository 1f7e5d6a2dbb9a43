//! Runs: the engine's decisions, made durable and carried out.

mod conversations;
mod driver;
mod error;
mod intake;
mod journal;
mod live;
mod perform;
mod questions;
mod recovery;
mod service;
mod start;

pub use driver::{Batch, Driver, RunInfo, Sink, SinkError};
pub use error::RunError;
pub use service::Runs;
