//! The records and filters of a [`Store`](crate::Store).

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::ConversationChange;
use crate::event_chunk::EventChunk;

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
    /// The task is new, and this owner takes its lease, with the token 0. Refused if the task exists, or if it has a principal
    /// and its conversation belongs to another one: to that of the first task of the conversation.
    pub create: Option<LeaseTerm>,
    /// What changed in the conversation.
    pub conversation: Option<ConversationChange>,
    /// The events of a task's log, oldest first. Numbers rise; one that is left out never exists.
    pub events: Vec<EventChunk>,
    /// What must follow this commit, also after a crash; requires a fence.
    pub outbox: Vec<OutboxEntry>,
    /// The right by which the owner of a running task writes; required for events.
    pub fence: Option<Fence>,
}

/// Something that must be done after a commit. It is stored until it is done, and removed with its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxEntry {
    pub task: String,
    /// Unique within the task.
    pub id: String,
    /// What is to be done, as JSON, at most [`MAX_OUTBOX_BYTES`](crate::MAX_OUTBOX_BYTES). Stores do not parse it.
    pub body: String,
    /// After this time it is not tried again.
    pub deadline: Timestamp,
}

/// The exclusive right to write the log of a task, and the place of a commit among those of its owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fence {
    pub task: String,
    /// The token of the lease. A commit with an older token is refused.
    pub token: u64,
    /// The number of the commit under this token, from 1. A number that was committed before changes nothing, so that a
    /// commit with an unknown outcome can be repeated.
    pub number: u64,
    /// The owner may show events up to this number before they are stored; a later owner begins above it. Never falls.
    pub reserved: u64,
    /// The control messages up to this number are handled with this commit. Never falls.
    pub handled: u64,
    /// The owner releases the lease with this commit.
    pub release: bool,
}

/// Who takes a lease, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseTerm {
    /// The process. It takes its own lease back at once, also after a restart.
    pub owner: String,
    /// How long other owners are refused. The owner renews the lease before that.
    pub ttl: Duration,
}

/// The exclusive right to write the log of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lease {
    /// Rises with each owner. The one of a new task is 0.
    pub token: u64,
    /// Earlier owners may have shown events up to this number.
    pub reserved: u64,
    /// Whether control messages wait for the owner.
    pub has_controls: bool,
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
    /// Whether the client may start the task again after it was lost, because every call of its run may be repeated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_repeatable: bool,
    /// How often a process continued the task after another one had crashed during it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recoveries: u32,
    /// The agent's message about the phase, in the same shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
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
