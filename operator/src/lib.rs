//! The CAIPE operator: makes `CaipeSupervisor` resources real, and tells the truth about them.

mod chance;
mod compact;
pub mod defaults;
pub mod events;
pub mod health;
pub mod labels;
pub mod lease;
pub mod metrics;
pub mod probe;
pub mod run;
pub mod supervisor;
pub mod world;
