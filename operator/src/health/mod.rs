//! What the kubelet and Prometheus ask: `/healthz`, `/readyz`, `/metrics`. Open to everybody who can reach the port, so
//! nothing here names a resource.

mod server;
mod state;

pub use server::{HealthError, bind, serve};
pub use state::{Gate, Health, Heartbeat};
