//! The Slack bot: an A2A client of a supervisor that shows tasks in Slack.
//!
//! ```text
//! socket | http -> event -> bot (policy) -> turn -> caipe_a2a::client
//!                            press |          |
//!                                  v          v
//!                 view -> transcript (what is to be shown) -> delivery (the next call) -> api
//! ```
//!
//! `event`, `policy`, `question`, `text`, `transcript` and `delivery` are pure.

mod api;
mod bot;
mod delivery;
mod event;
mod http;
mod manifest;
mod people;
mod policy;
mod press;
mod question;
mod settings;
mod socket;
mod store;
mod text;
mod transcript;
mod turn;

use std::path::PathBuf;

pub use api::ApiError;
pub use bot::run;
pub use manifest::{manifest, scopes};
pub use settings::{
    Alerts, Channel, Channels, Emoji, Escalation, IncludeBots, Mode, Other, Prompts, Qanda, Settings,
    SettingsError, VictorOps,
};

/// Why the bot ended.
#[derive(Debug, thiserror::Error)]
pub enum BotError {
    /// Slack rejects a token.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The database cannot be used.
    #[error("failed to open {}: {reason}; set CAIPE_SLACK_DATABASE to a file in a folder that can be written", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Events over HTTP cannot be received.
    #[error("failed to serve events over HTTP: {0}")]
    Listen(std::io::Error),
    /// The mode lacks its token or its listener.
    #[error("failed to receive events: Socket Mode needs an app token, HTTP a signing secret and an address")]
    Mode,
}
