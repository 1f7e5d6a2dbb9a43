//! What the kubelet and Prometheus ask: `/healthz`, `/readyz`, `/metrics`. Open to everybody who can reach the port, so
//! nothing here names a resource.

mod pulse;
mod server;

pub use pulse::{Beat, Gate, Health};
pub use server::{HealthError, bind, serve};
