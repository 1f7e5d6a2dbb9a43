//! The errors of a [`Store`](crate::Store).

use jiff::Timestamp;

/// A failure of a backend.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The backend cannot be reached or opened.
    #[error("failed to reach the {backend} store: {reason}")]
    Unavailable { backend: &'static str, reason: String },
    /// Another process uses the store.
    #[error(
        "failed to open the {backend} store: {place}: another process uses it; stop that one, or choose another data directory"
    )]
    InUse { backend: &'static str, place: String },
    /// The backend rejected a write or a read.
    #[error("failed to {action} in the {backend} store: {reason}")]
    Failed { backend: &'static str, action: &'static str, reason: String },
    /// A write contradicts the stored data.
    #[error("failed to commit to the {backend} store: {reason}")]
    Refused { backend: &'static str, reason: String },
    /// Another process has the lease of the task.
    #[error("failed to take over task {task:?}: {owner} has its lease until {until}")]
    LeaseTaken { task: String, owner: String, until: Timestamp },
    /// The task that a commit creates exists.
    #[error("failed to commit: task {task:?} exists")]
    Exists { task: String },
    /// The conversation of a new task belongs to another principal.
    #[error("failed to commit: conversation {context:?} belongs to another principal")]
    ForeignConversation { context: String },
    /// Too many control messages wait for the owner of a task.
    #[error(
        "failed to send a control message to task {task:?}: too many wait for its owner; try again later"
    )]
    MailboxFull { task: String },
    /// Another process continues the task.
    #[error("failed to commit: another process continues task {task:?}")]
    LeaseLost { task: String },
    /// A value is larger than the limit.
    #[error("failed to store {what}: {bytes} bytes, at most {limit} are allowed")]
    TooLarge { what: String, bytes: usize, limit: usize },
    /// A value cannot be written as JSON.
    #[error("failed to encode for the store: {0}")]
    Encode(String),
    /// Stored data cannot be read back.
    #[error("failed to read back from the store: {what}: {reason}")]
    Corrupt { what: String, reason: String },
}

impl StoreError {
    /// Whether the same call may succeed later, for example once a full disk has space.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Failed { .. })
    }

    /// A bounded name of the kind of failure, for metrics.
    pub const fn category(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } | Self::InUse { .. } => "unavailable",
            Self::Failed { .. } => "failed",
            Self::Refused { .. } => "refused",
            Self::LeaseTaken { .. } => "lease_taken",
            Self::Exists { .. } => "exists",
            Self::ForeignConversation { .. } => "foreign_conversation",
            Self::MailboxFull { .. } => "mailbox_full",
            Self::LeaseLost { .. } => "lease_lost",
            Self::TooLarge { .. } => "too_large",
            Self::Encode(_) => "encode",
            Self::Corrupt { .. } => "corrupt",
        }
    }
}
