//! The endpoints `/healthz`, `/readyz` and `/metrics`. They need no credential, so they name no resource.

mod server;
mod state;

pub use server::{HealthError, bind, serve};
pub use state::{Gate, Health, Heartbeat};
