//! The events of a stream, and the response to a message.

use serde::{Deserialize, Serialize};

use super::serde_helpers::{is_false, nullable};
use super::{Artifact, Message, Metadata, Task, TaskState, TaskStatus};

/// One event of a stream (`StreamResponse`): an object with exactly one member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "WireEvent")]
pub enum Event {
    Task(Box<Task>),
    /// A message; the only event of its stream.
    Message(Box<Message>),
    /// A change of the task's status.
    StatusUpdate(TaskStatusUpdateEvent),
    /// A new artifact, or a piece of one.
    ArtifactUpdate(TaskArtifactUpdateEvent),
}

impl Event {
    /// The state that the event reports.
    pub fn state(&self) -> Option<TaskState> {
        match self {
            Self::Task(task) => Some(task.status.state),
            Self::StatusUpdate(update) => Some(update.status.state),
            Self::Message(_) | Self::ArtifactUpdate(_) => None,
        }
    }

    /// The id of the task that the event belongs to.
    pub fn task_id(&self) -> Option<&str> {
        match self {
            Self::Task(task) => Some(&task.id),
            Self::StatusUpdate(update) => Some(&update.task_id),
            Self::ArtifactUpdate(update) => Some(&update.task_id),
            Self::Message(message) => message.task_id.as_deref(),
        }
    }
}

impl From<Task> for Event {
    fn from(task: Task) -> Self {
        Self::Task(Box::new(task))
    }
}

impl From<Message> for Event {
    fn from(message: Message) -> Self {
        Self::Message(Box::new(message))
    }
}

impl From<TaskStatusUpdateEvent> for Event {
    fn from(update: TaskStatusUpdateEvent) -> Self {
        Self::StatusUpdate(update)
    }
}

impl From<TaskArtifactUpdateEvent> for Event {
    fn from(update: TaskArtifactUpdateEvent) -> Self {
        Self::ArtifactUpdate(update)
    }
}

/// A change of a task's status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatusUpdateEvent {
    #[serde(alias = "task_id")]
    pub task_id: String,
    #[serde(default, alias = "context_id", deserialize_with = "nullable")]
    pub context_id: String,
    pub status: TaskStatus,
    /// Free-form data about the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// A new artifact, or a piece of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskArtifactUpdateEvent {
    #[serde(alias = "task_id")]
    pub task_id: String,
    #[serde(default, alias = "context_id", deserialize_with = "nullable")]
    pub context_id: String,
    /// The artifact, or a piece of it.
    pub artifact: Artifact,
    /// Whether to append the piece to the artifact with the same id; otherwise it replaces that artifact.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "is_false")]
    pub append: bool,
    /// Whether this is the last piece of the artifact.
    #[serde(default, alias = "last_chunk", deserialize_with = "nullable", skip_serializing_if = "is_false")]
    pub last_chunk: bool,
    /// Free-form data about the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// The response to a message (`SendMessageResponse`): an object with exactly one member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "WireEvent")]
pub enum Reply {
    /// The task that the message started or continued.
    Task(Box<Task>),
    /// A direct answer, without a task.
    Message(Box<Message>),
}

/// The JSON form as read: the members of the `oneof` side by side, so that unknown members are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEvent {
    task: Option<Box<Task>>,
    message: Option<Box<Message>>,
    #[serde(alias = "status_update")]
    status_update: Option<TaskStatusUpdateEvent>,
    #[serde(alias = "artifact_update")]
    artifact_update: Option<TaskArtifactUpdateEvent>,
}

impl TryFrom<WireEvent> for Event {
    type Error = &'static str;

    fn try_from(wire: WireEvent) -> Result<Self, Self::Error> {
        match (wire.task, wire.message, wire.status_update, wire.artifact_update) {
            (Some(task), None, None, None) => Ok(Self::Task(task)),
            (None, Some(message), None, None) => Ok(Self::Message(message)),
            (None, None, Some(update), None) => Ok(Self::StatusUpdate(update)),
            (None, None, None, Some(update)) => Ok(Self::ArtifactUpdate(update)),
            _ => Err("exactly one of task, message, statusUpdate, artifactUpdate is needed"),
        }
    }
}

impl TryFrom<WireEvent> for Reply {
    type Error = &'static str;

    fn try_from(wire: WireEvent) -> Result<Self, Self::Error> {
        match (wire.task, wire.message) {
            (Some(task), None) => Ok(Self::Task(task)),
            (None, Some(message)) => Ok(Self::Message(message)),
            _ => Err("exactly one of task, message is needed"),
        }
    }
}
