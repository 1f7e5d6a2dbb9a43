//! The records, filters and errors of a [`Store`](crate::Store).

use caipe_engine::{Input, RunEvent, RunState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What [`Store::prune`](crate::Store::prune) removes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Removes tasks that ended before this time, with their logs; `None` keeps them.
    pub tasks_before: Option<Timestamp>,
    /// Removes conversations without a write since this time, with their tasks, unless one of these tasks is under way;
    /// `None` keeps them. A task that waits for a person is not under way.
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
    /// The conversation.
    pub context: String,
    /// The new record of the task.
    pub task: Option<TaskRecord>,
    /// The whole state of the conversation; replaces the earlier snapshot and its appends.
    pub snapshot: Option<Snapshot>,
    /// Inputs to apply on top of the newest snapshot, in order. If both are given, the snapshot comes first.
    pub appends: Vec<Input>,
    /// Events for the task's log; their sequence numbers are consecutive from `first_seq`.
    pub events: Vec<RunEvent>,
    /// When the events happened. Stores keep microseconds.
    pub at: Timestamp,
    /// The sequence number of the first event; the first of a task is 1.
    pub first_seq: u64,
    /// The task of the events; required if there are any.
    pub events_of: String,
}

/// A serialised [`RunState`]. The owner of the state makes it, so that the state is not copied.
#[derive(Debug, Clone)]
pub struct Snapshot(pub(crate) String);

impl Snapshot {
    pub fn of(state: &RunState) -> Result<Self, StoreError> {
        serde_json::to_string(state).map(Self).map_err(|error| StoreError::Encode(error.to_string()))
    }
}

/// A stored conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The newest snapshot.
    pub state: RunState,
    /// The inputs after the snapshot, in order.
    pub appends: Vec<Input>,
}

/// An event with its place in the task's log.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedEvent {
    /// The sequence number; the first of a task is 1.
    pub seq: u64,
    /// When the event happened, to the microsecond.
    pub at: Timestamp,
    pub event: RunEvent,
}

/// A task without its events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    pub id: String,
    /// The conversation.
    pub context: String,
    pub phase: TaskPhase,
    pub created: Timestamp,
    /// When the phase last changed.
    pub updated: Timestamp,
    /// The principal that may see the task; `None` without authentication.
    pub owner: Option<String>,
    pub trace_id: String,
    /// The message that began the task, in the shape of the protocol's canonical model.
    pub request: Value,
    /// The later messages of the client, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<TaskReply>,
    /// The agent's message about the phase, in the same shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<Value>,
}

/// A client's message to a task that waited for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskReply {
    /// The number of the last event before the message.
    pub after: u64,
    pub at: Timestamp,
    /// The message, in the shape of the protocol's canonical model.
    pub message: Value,
}

/// A task's place in the order of lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPlace {
    /// When the phase last changed; compared by microseconds.
    pub updated: Timestamp,
    pub id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskPhase {
    Submitted,
    Working,
    /// The task waits for a person.
    InputRequired,
    /// The task ended with an answer.
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

    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only tasks of this conversation.
    pub context: Option<String>,
    /// Only tasks in one of these phases; empty means any.
    pub phases: Vec<TaskPhase>,
    /// Only tasks of this owner.
    pub owner: Option<String>,
    /// Only tasks whose phase changed at this time or later.
    pub since: Option<Timestamp>,
    /// Only tasks after this place in the list.
    pub beyond: Option<TaskPlace>,
    /// The most tasks to return; 0 means no limit.
    pub limit: usize,
}

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
