//! What a stream is made of.

use serde::{Deserialize, Deserializer, de::Error, de::IgnoredAny};
use serde_json::value::RawValue;

use super::{Artifact, ArtifactUpdateTag, Message, StatusUpdateTag, Task, TaskStatus};
use crate::model::Metadata;

/// One event of a stream, and the answer to a message. Decodes from JSON text only.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
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
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusUpdate {
    /// `status-update`.
    pub kind: Option<StatusUpdateTag>,
    /// The task.
    pub task_id: String,
    /// Its conversation.
    #[serde(default)]
    pub context_id: String,
    /// Whether this is the stream's last event.
    #[serde(default, rename = "final")]
    pub is_final: bool,
    /// The new status.
    pub status: TaskStatus,
    /// What else is known of it.
    pub metadata: Option<Metadata>,
}

/// An artifact came or grew.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactUpdate {
    /// `artifact-update`.
    pub kind: Option<ArtifactUpdateTag>,
    /// The task.
    pub task_id: String,
    /// Its conversation.
    #[serde(default)]
    pub context_id: String,
    /// Whether it is added to the artifact of the same id. CAIPE's agents leave it out on chunks; so absent
    /// is read as `true`, which for an unknown artifact begins it.
    pub append: Option<bool>,
    /// Whether nothing more comes for this artifact.
    pub last_chunk: Option<bool>,
    /// The artifact, or a piece of it.
    pub artifact: Artifact,
    /// What else is known of it.
    pub metadata: Option<Metadata>,
}

/// What tells the four apart: the tag, else the members that only one of them has.
#[derive(Deserialize)]
struct Probe<'a> {
    #[serde(borrow)]
    kind: Option<std::borrow::Cow<'a, str>>,
    artifact: Option<IgnoredAny>,
    status: Option<IgnoredAny>,
    id: Option<IgnoredAny>,
}

impl Probe<'_> {
    fn kind(&self) -> &str {
        match (self.kind.as_deref(), &self.artifact, &self.status, &self.id) {
            (Some(kind), ..) => kind,
            (None, Some(_), ..) => "artifact-update",
            (None, None, Some(_), Some(_)) => "task",
            (None, None, Some(_), None) => "status-update",
            (None, None, None, _) => "message",
        }
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let probe: Probe<'_> = serde_json::from_str(raw).map_err(D::Error::custom)?;
        match probe.kind() {
            "task" => serde_json::from_str(raw).map(Self::Task),
            "message" => serde_json::from_str(raw).map(Self::Message),
            "status-update" => serde_json::from_str(raw).map(Self::StatusUpdate),
            "artifact-update" => serde_json::from_str(raw).map(Self::ArtifactUpdate),
            other => Err(serde_json::Error::custom(format_args!("unknown kind {other:?}"))),
        }
        .map_err(D::Error::custom)
    }
}
