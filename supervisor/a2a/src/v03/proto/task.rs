//! Tasks and artifacts.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Message, Part};
use crate::model::{Metadata, null_is_default, timestamp};

/// A unit of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its id.
    pub id: String,
    /// Its conversation.
    #[serde(default, alias = "context_id")]
    pub context_id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// What it has produced so far.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// What was said, oldest first.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Message>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// The state.
    pub state: TaskState,
    /// What the agent says about it.
    #[serde(default, alias = "update", skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Since when.
    #[serde(default, with = "timestamp", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
}

/// The states of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs, clippy::enum_variant_names)]
pub enum TaskState {
    TaskStateSubmitted,
    TaskStateWorking,
    TaskStateCompleted,
    TaskStateFailed,
    /// With two L, unlike in 1.0, whose spelling is read too.
    #[serde(alias = "TASK_STATE_CANCELED")]
    TaskStateCancelled,
    TaskStateInputRequired,
    TaskStateRejected,
    TaskStateAuthRequired,
    #[serde(other)]
    TaskStateUnspecified,
}

/// What a task produces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Its id.
    #[serde(alias = "artifact_id")]
    pub artifact_id: String,
    /// A name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The content.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The URIs of extensions that it uses.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}
