//! The records, filters and errors of a [`Store`](crate::Store).

use caipe_engine::{Input, RunEvent, RunState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What [`Store::prune`](crate::Store::prune) removes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Tasks that ended before this go, with their logs; `None` keeps them.
    pub tasks_before: Option<Timestamp>,
    /// Conversations that were last written to before this go, with all their tasks, unless one of these is
    /// under way; `None` keeps them. A task that still waits for a human does not hold its conversation.
    pub conversations_before: Option<Timestamp>,
}

/// What [`Store::prune`](crate::Store::prune) removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Tasks, each with its log.
    pub tasks: usize,
    pub conversations: usize,
}

/// One atomic write.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// The conversation it belongs to.
    pub context: String,
    /// The task as it is from now on.
    pub task: Option<TaskRecord>,
    /// The whole state of the conversation; replaces what was saved and every append since.
    pub snapshot: Option<Snapshot>,
    /// Inputs to apply on top of the newest snapshot, in order. If both are given, the snapshot comes first.
    pub appends: Vec<Input>,
    /// Events for the task's log; their sequence numbers are consecutive from `first_seq`.
    pub events: Vec<RunEvent>,
    /// When the events happened. A store keeps microseconds of it.
    pub at: Timestamp,
    /// The sequence number of the first event; the first of a task is 1.
    pub first_seq: u64,
    /// The task that the events belong to; needed if there are any.
    pub events_of: String,
}

/// A serialised [`RunState`]. Made where the state lives, so that nobody copies it.
#[derive(Debug, Clone)]
pub struct Snapshot(pub(crate) String);

impl Snapshot {
    /// Serialises a state.
    pub fn of(state: &RunState) -> Result<Self, StoreError> {
        serde_json::to_string(state).map(Self).map_err(|error| StoreError::Encode(error.to_string()))
    }
}

/// What was saved of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The newest snapshot.
    pub state: RunState,
    /// What came after it, in order.
    pub appends: Vec<Input>,
}

/// An event with its place in the task's log.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedEvent {
    /// Its sequence number; the first of a task is 1.
    pub seq: u64,
    /// When it happened, to the microsecond.
    pub at: Timestamp,
    pub event: RunEvent,
}

/// What is known of a task besides its events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    pub id: String,
    /// The conversation.
    pub context: String,
    pub phase: TaskPhase,
    /// When it was made.
    pub created: Timestamp,
    /// When its phase last changed.
    pub updated: Timestamp,
    /// The principal that may see it; `None` without authentication.
    pub owner: Option<String>,
    /// The trace that it belongs to.
    pub trace_id: String,
    /// The message that began it, in the shape of the protocol's canonical model.
    pub request: Value,
    /// What the client said to it since, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<TaskReply>,
    /// What the agent says of its phase, in the same shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<Value>,
}

/// What a client said to a task that waited for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskReply {
    /// The number of the last event before it.
    pub after: u64,
    /// When it was said.
    pub at: Timestamp,
    /// The message, in the shape of the protocol's canonical model.
    pub message: Value,
}

/// A task's place in the order of lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPlace {
    /// When its phase last changed; compared by microseconds.
    pub updated: Timestamp,
    pub id: String,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskPhase {
    /// Accepted.
    Submitted,
    /// Under way.
    Working,
    /// It waits for a human.
    InputRequired,
    /// It ended with an answer.
    Completed,
    Failed,
    Canceled,
}

impl TaskPhase {
    /// The name in a store's columns; the same as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    /// Whether a run is under way, or about to be.
    pub const fn is_under_way(self) -> bool {
        matches!(self, Self::Submitted | Self::Working)
    }

    /// Whether nothing more will happen.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only this conversation's.
    pub context: Option<String>,
    /// Only those in one of these phases; empty means any.
    pub phases: Vec<TaskPhase>,
    /// Only this owner's.
    pub owner: Option<String>,
    /// Only those whose phase changed at this time or since.
    pub since: Option<Timestamp>,
    /// Only those that come after this place in the list.
    pub beyond: Option<TaskPlace>,
    /// Most of them; 0 means no limit.
    pub limit: usize,
}

/// What a backend can fail with.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached or opened.
    #[error("failed to reach the {backend} store: {reason}")]
    Unavailable { backend: &'static str, reason: String },
    /// Another process has it; it may come free.
    #[error(
        "failed to open the {backend} store: {place}: another process uses it; stop that one, or choose another data directory"
    )]
    InUse {
        backend: &'static str,
        /// Where it is.
        place: String,
    },
    /// It refused a write or a read.
    #[error("failed to {action} in the {backend} store: {reason}")]
    Failed { backend: &'static str, action: &'static str, reason: String },
    /// One value is larger than a store takes.
    #[error("failed to store {what}: {bytes} bytes, at most {limit} are allowed")]
    TooLarge {
        what: String,
        /// Its size when serialised.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// Something cannot be written as JSON.
    #[error("failed to encode for the store: {0}")]
    Encode(String),
    /// What is stored cannot be read back.
    #[error("failed to read back from the store: {what}: {reason}")]
    Corrupt {
        what: String,
        /// Why it cannot be used.
        reason: String,
    },
}

impl StoreError {
    /// A bounded name of the kind of failure, for metrics.
    pub const fn category(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } | Self::InUse { .. } => "unavailable",
            Self::Failed { .. } => "failed",
            Self::TooLarge { .. } => "too_large",
            Self::Encode(_) => "encode",
            Self::Corrupt { .. } => "corrupt",
        }
    }
}
