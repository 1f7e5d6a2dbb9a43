//! What a stream is made of, and what a call answers with.

use serde::{Deserialize, Serialize};

use super::serde_helpers::is_false;
use super::{Artifact, Message, Metadata, Task, TaskState, TaskStatus};

/// One event of a stream (`StreamResponse`): an object with exactly one member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "WireEvent")]
pub enum Event {
    /// The task as a whole.
    Task(Box<Task>),
    /// A message; the only event of its stream.
    Message(Box<Message>),
    /// The task's status changed.
    StatusUpdate(TaskStatusUpdateEvent),
    /// An artifact came or grew.
    ArtifactUpdate(TaskArtifactUpdateEvent),
}

impl Event {
    /// The state that it tells of.
    pub fn state(&self) -> Option<TaskState> {
        match self {
            Self::Task(task) => Some(task.status.state),
            Self::StatusUpdate(update) => Some(update.status.state),
            Self::Message(_) | Self::ArtifactUpdate(_) => None,
        }
    }

    /// The task that it belongs to.
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

/// The task's status changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatusUpdateEvent {
    /// The task.
    pub task_id: String,
    /// Its conversation.
    #[serde(default)]
    pub context_id: String,
    /// The new status.
    pub status: TaskStatus,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// An artifact came or grew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskArtifactUpdateEvent {
    /// The task.
    pub task_id: String,
    /// Its conversation.
    #[serde(default)]
    pub context_id: String,
    /// The artifact, or a piece of it.
    pub artifact: Artifact,
    /// Whether it is added to the artifact of the same id; otherwise it takes its place.
    #[serde(default, skip_serializing_if = "is_false")]
    pub append: bool,
    /// Whether nothing more comes for this artifact.
    #[serde(default, skip_serializing_if = "is_false")]
    pub last_chunk: bool,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// The answer to a message (`SendMessageResponse`): an object with exactly one member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "WireEvent")]
pub enum Reply {
    /// The task that the message began or went on with.
    Task(Box<Task>),
    /// A direct answer.
    Message(Box<Message>),
}

/// The JSON form, read: `oneof` members side by side, so that unknown ones can be ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEvent {
    task: Option<Box<Task>>,
    message: Option<Box<Message>>,
    status_update: Option<TaskStatusUpdateEvent>,
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
