//! Agent cards: made from what an agent is, written for clients of both versions, read from peers of both.

mod build;
mod read;
mod write;

pub use build::CardBuilder;
pub use read::{CardError, parse};
pub use write::{CardMode, document};

/// Where a card is served.
pub const PATH: &str = "/.well-known/agent-card.json";

/// Where clients of 0.2 look for it.
pub const OLD_PATH: &str = "/.well-known/agent.json";
