//! Tasks and artifacts.

use jiff::Timestamp;
use serde::Deserialize;

use super::{Message, Part, TaskTag};
use crate::model::{Metadata, null_is_default, timestamp};

/// A task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// `task`.
    pub kind: Option<TaskTag>,
    /// The id.
    pub id: String,
    /// The context.
    #[serde(default)]
    pub context_id: String,
    /// The status.
    pub status: TaskStatus,
    /// The artifacts.
    #[serde(default, deserialize_with = "null_is_default")]
    pub artifacts: Vec<Artifact>,
    /// The messages, oldest first.
    #[serde(default, deserialize_with = "null_is_default")]
    pub history: Vec<Message>,
    /// Free-form data.
    pub metadata: Option<Metadata>,
}

/// The status of a task.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TaskStatus {
    /// The state.
    pub state: TaskState,
    /// The agent's message about the state.
    pub message: Option<Message>,
    /// The time of the state.
    #[serde(default, with = "timestamp")]
    pub timestamp: Option<Timestamp>,
}

/// The states of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum TaskState {
    Submitted,
    Working,
    InputRequired,
    Completed,
    Canceled,
    Failed,
    Rejected,
    AuthRequired,
    #[serde(other)]
    Unknown,
}

/// An artifact.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// The id.
    pub artifact_id: String,
    /// A name.
    pub name: Option<String>,
    /// A description.
    pub description: Option<String>,
    /// The content.
    #[serde(default, deserialize_with = "null_is_default")]
    pub parts: Vec<Part>,
    /// Free-form data.
    pub metadata: Option<Metadata>,
    /// The URIs of extensions that it uses.
    #[serde(default, deserialize_with = "null_is_default")]
    pub extensions: Vec<String>,
}
