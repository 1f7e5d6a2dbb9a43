//! The routes: A2A, and what a platform wants to know.

mod auth;
mod facade;
mod listen;
mod listing;
mod origin;
mod routes;
mod status;

pub use auth::{Guard, GuardError};
pub use facade::Facade;
pub use listen::{Limits, serve};
pub use routes::{Site, router};
