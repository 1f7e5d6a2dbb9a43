//! Why the bot ends.

use crate::api::ApiError;

/// Why the bot ended.
#[derive(Debug, thiserror::Error)]
pub enum BotError {
    /// Slack rejects a token.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The database cannot be used.
    #[error(
        "failed to open {database}: {reason}; set CAIPE_SLACK_DATABASE to a file in a folder that can be written, or to the URL of Redis"
    )]
    Store {
        /// The file, or the kind of server.
        database: String,
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
