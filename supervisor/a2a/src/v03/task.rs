//! Tasks and artifacts.

use jiff::Timestamp;
use serde::Deserialize;

use super::{Message, Part, TaskTag};
use crate::model::{Metadata, null_is_default, timestamp};

/// A unit of work.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// `task`.
    pub kind: Option<TaskTag>,
    /// Its id.
    pub id: String,
    /// Its conversation.
    #[serde(default)]
    pub context_id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// What it has produced so far.
    #[serde(default, deserialize_with = "null_is_default")]
    pub artifacts: Vec<Artifact>,
    /// What was said, oldest first.
    #[serde(default, deserialize_with = "null_is_default")]
    pub history: Vec<Message>,
    /// What else is known of it.
    pub metadata: Option<Metadata>,
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TaskStatus {
    /// The state.
    pub state: TaskState,
    /// What the agent says about it.
    pub message: Option<Message>,
    /// Since when.
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

/// What a task produces.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Its id.
    pub artifact_id: String,
    /// A name.
    pub name: Option<String>,
    /// A description.
    pub description: Option<String>,
    /// The content.
    #[serde(default, deserialize_with = "null_is_default")]
    pub parts: Vec<Part>,
    /// What else is known of it.
    pub metadata: Option<Metadata>,
    /// The URIs of extensions that it uses.
    #[serde(default, deserialize_with = "null_is_default")]
    pub extensions: Vec<String>,
}
