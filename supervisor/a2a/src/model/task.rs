//! Tasks and their states.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::serde_helpers::{nullable, timestamp};
use super::{Artifact, Message, Metadata};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// The id, chosen by the server.
    pub id: String,
    /// The id of the context that the task belongs to.
    #[serde(default, alias = "context_id", deserialize_with = "nullable")]
    pub context_id: String,
    /// The current status.
    pub status: TaskStatus,
    /// The artifacts that the task has produced so far.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The messages of the task, oldest first.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Message>,
    /// Free-form data about the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl Task {
    /// A new task: submitted, with the message that began it as its history. The message gets the ids.
    pub fn submitted(id: impl Into<String>, context_id: impl Into<String>, message: Message) -> Self {
        let (id, context_id) = (id.into(), context_id.into());
        Self {
            status: TaskStatus::new(TaskState::Submitted),
            artifacts: Vec::new(),
            history: vec![message.within(&id, &context_id)],
            metadata: None,
            id,
            context_id,
        }
    }

    /// Keeps the `length` newest messages of the history; `None` keeps all.
    pub fn trim_history(&mut self, length: Option<u32>) {
        let Some(length) = length.and_then(|length| usize::try_from(length).ok()) else { return };
        let surplus = self.history.len().saturating_sub(length);
        self.history.drain(..surplus);
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskStatus {
    pub state: TaskState,
    /// The agent's message about the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// The time of the state, in milliseconds.
    #[serde(default, with = "timestamp", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

impl TaskStatus {
    /// A bare state.
    pub const fn new(state: TaskState) -> Self {
        Self { state, message: None, timestamp: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TaskState {
    #[serde(rename = "TASK_STATE_SUBMITTED")]
    Submitted,
    #[serde(rename = "TASK_STATE_WORKING")]
    Working,
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    #[serde(rename = "TASK_STATE_CANCELED")]
    Canceled,
    /// Waits for the client's next message.
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
    /// Waits for credentials.
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
    /// Missing, or unknown to this version.
    #[serde(rename = "TASK_STATE_UNSPECIFIED", other)]
    Unspecified,
}

impl TaskState {
    /// Whether the task has ended.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Whether the client must act before anything more happens.
    pub const fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Whether a blocking call returns and a stream ends here.
    pub const fn ends_stream(self) -> bool {
        self.is_terminal() || self.is_interrupted()
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::InputRequired => "input-required",
            Self::Rejected => "rejected",
            Self::AuthRequired => "auth-required",
            Self::Unspecified => "unknown",
        })
    }
}
