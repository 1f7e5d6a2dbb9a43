//! Tasks and artifacts.

use jiff::Timestamp;
use serde::Deserialize;

use super::{Message, Part, TaskTag};
use crate::model::{Metadata, nullable, timestamp};

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    pub kind: Option<TaskTag>,
    pub id: String,
    #[serde(default)]
    pub context_id: String,
    pub status: TaskStatus,
    #[serde(default, deserialize_with = "nullable")]
    pub artifacts: Vec<Artifact>,
    /// The messages, oldest first.
    #[serde(default, deserialize_with = "nullable")]
    pub history: Vec<Message>,
    /// Free-form data.
    pub metadata: Option<Metadata>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TaskStatus {
    pub state: TaskState,
    /// The agent's message about the state.
    pub message: Option<Message>,
    /// The time of the state.
    #[serde(default, with = "timestamp")]
    pub timestamp: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    pub artifact_id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub parts: Vec<Part>,
    /// Free-form data.
    pub metadata: Option<Metadata>,
    /// The URIs of extensions that it uses.
    #[serde(default, deserialize_with = "nullable")]
    pub extensions: Vec<String>,
}
