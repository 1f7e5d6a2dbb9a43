//! The routes: A2A, and what a platform wants to know.

mod auth;
mod facade;
mod listen;
mod listing;
mod origin;
mod routes;
mod status;

pub use auth::{Guard, GuardError, Keyring, RulesError, TokenRules};
pub use facade::Facade;
pub use listen::{Limits, serve};
pub use origin::{OriginError, Origins};
pub(crate) use origin::{Pages, check as check_origin};
pub use routes::{Site, router};
