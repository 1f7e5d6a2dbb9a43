//! What a server answers.

use serde::Serialize;

use super::{Artifact, Message, Task, TaskPushConfig, TaskStatus};
use crate::model::Metadata;

/// The answer to a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SendResponse {
    /// The task that the message began or went on with.
    Task(Box<Task>),
    /// A direct answer.
    Message(Box<Message>),
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamResponse {
    /// The task as a whole.
    Task(Box<Task>),
    /// A message.
    Message(Box<Message>),
    /// The task's status changed.
    StatusUpdate(StatusUpdate),
    /// An artifact came or grew.
    ArtifactUpdate(ArtifactUpdate),
}

/// The task's status changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusUpdate {
    /// The task.
    pub task_id: String,
    /// Its conversation.
    pub context_id: String,
    /// The new status.
    pub status: TaskStatus,
    /// Whether this is the stream's last event.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// What else is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// An artifact came or grew.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactUpdate {
    /// The task.
    pub task_id: String,
    /// Its conversation.
    pub context_id: String,
    /// The artifact, or a piece of it.
    pub artifact: Artifact,
    /// Whether it is added to the artifact of the same id; otherwise it takes its place.
    pub append: bool,
    /// Whether nothing more comes for this artifact.
    pub last_chunk: bool,
    /// What else is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// A page of tasks. The package knows none; this is the answer of 1.0 with the tasks of 0.3.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasks {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Where the next page begins; empty at the end.
    pub next_page_token: String,
    /// The page size in force.
    pub page_size: u32,
    /// How many there are in all.
    pub total_size: u64,
}

/// A page of push configs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListPushConfigs {
    /// The configs.
    pub configs: Vec<TaskPushConfig>,
    /// Where the next page begins; empty at the end.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next_page_token: String,
}
