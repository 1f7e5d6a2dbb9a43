//! The Slack bot: an A2A client of a supervisor that shows tasks in Slack.
//!
//! ```text
//! socket | http -> event -> accept (policy) -> turn -> caipe_a2a::client
//!                   press, command |          |
//!                                  v          v
//!                 view -> transcript (what is to be shown) -> delivery (the next call) -> api
//! ```
//!
//! `files` carries files both ways. `event`, `policy`, `question`, `text`, `transcript` and `delivery` are pure.

mod accept;
mod api;
mod command;
mod delivery;
mod error;
mod event;
mod feedback;
mod files;
mod footer;
mod http;
mod manifest;
mod memory;
mod people;
mod policy;
mod press;
mod question;
mod run;
mod saved_turn;
#[cfg(test)]
mod schema_tests;
mod settings;
mod share;
mod socket;
mod state;
mod store;
mod text;
mod transcript;
mod turn;

pub use api::ApiError;
pub use error::BotError;
pub use http::Endpoints;
pub use manifest::manifest;
pub use run::run;
pub use settings::{
    Alerts, Channel, Channels, Database, Emoji, Escalation, IncludeBots, Langfuse, Mode, Other, Prompts,
    Qanda, Settings, SettingsError, VictorOps,
};
