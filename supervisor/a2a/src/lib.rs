//! The A2A protocol, 0.3 and 1.0 at one URL.
//!
//! [`model`] is the canonical model, that of 1.0. [`v03`] reads and writes the JSON of 0.3.
//! [`card`] builds and reads agent cards. [`server`] serves an [`server::Agent`];
//! [`client`] calls other agents. The features `server` and `client` select the last two. [`listener`] opens the socket of
//! a server.

pub mod card;
#[cfg(feature = "client")]
pub mod client;
#[cfg(any(feature = "client", feature = "server"))]
pub mod event_id;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(any(feature = "client", feature = "server"))]
pub mod listener;
pub mod model;
#[cfg(feature = "server")]
pub mod server;
pub mod v03;

mod error;
#[cfg(feature = "server")]
mod validate;
mod version;

pub use error::{A2aError, Violation};
pub use version::ProtocolVersion;
