//! Why the bot ends.

use std::path::PathBuf;

use crate::api::ApiError;

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
    /// The endpoints cannot be served.
    #[error("failed to serve probes and events over HTTP: {0}")]
    Listen(std::io::Error),
    /// The mode lacks its token.
    #[error("failed to receive events: Socket Mode needs an app token, HTTP a signing secret")]
    Mode,
}
