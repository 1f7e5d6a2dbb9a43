//! Agent cards: built, written for clients of both versions, read from peers of both, signed and verified.

mod build;
mod canonical;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzz;
mod read;
mod schema;
mod sign;
mod verify;
mod write;

pub use build::CardBuilder;
pub use canonical::{Coverage, canonical};
pub use read::{CardError, parse};
pub use sign::{CardSigner, SignError, sign};
pub use verify::{KeySet, SignatureError, Verified, verify};
pub use write::{CardMode, document};

pub const PATH: &str = "/.well-known/agent-card.json";

/// The path of the card in 0.2.
pub const OLD_PATH: &str = "/.well-known/agent.json";
