//! The A2A protocol, 0.3 and 1.0 at one URL.
//!
//! [`model`] is the canonical model, that of 1.0. [`v03`] has the shapes of 0.3 and pure conversions both ways.
//! [`card`] makes and reads agent cards. [`server`] puts an [`server::Agent`] on an [`axum::Router`];
//! [`client`] talks to other people's agents; [`net`] reaches addresses that strangers name. Nothing here
//! knows what an agent does.

pub mod card;
pub mod client;
#[doc(hidden)]
pub mod fuzzing;
pub mod model;
pub mod net;
pub mod server;
pub mod v03;

mod error;
mod version;

pub use error::{A2aError, Violation};
pub use version::ProtocolVersion;
