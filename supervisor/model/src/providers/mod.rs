//! Which model to talk to, and how to reach it: [`ModelSettings`] from a map of variables, [`connect`] from settings.

mod connect;
mod provider;
mod settings;
mod target;

pub use connect::{ConnectError, connect};
pub use provider::Provider;
pub use settings::{ApiKey, ModelChoice, ModelSettings, Scope, SettingsError, Timeouts};
