//! The events of a stream.

use serde::{Deserialize, Deserializer, de::Error, de::IgnoredAny};
use serde_json::value::RawValue;

use super::{Artifact, ArtifactUpdateTag, Message, StatusUpdateTag, Task, TaskStatus};
use crate::model::Metadata;

/// One event of a stream, and the answer to a message. Decodes from JSON text only.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Task(Box<Task>),
    Message(Box<Message>),
    /// A change of the task's status.
    StatusUpdate(StatusUpdate),
    /// A new artifact, or a piece of one.
    ArtifactUpdate(ArtifactUpdate),
}

/// A change of the task's status.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusUpdate {
    pub kind: Option<StatusUpdateTag>,
    pub task_id: String,
    #[serde(default)]
    pub context_id: String,
    /// Whether this is the stream's last event.
    #[serde(default, rename = "final")]
    pub is_final: bool,
    pub status: TaskStatus,
    /// Free-form data.
    pub metadata: Option<Metadata>,
}

/// A new artifact, or a piece of one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactUpdate {
    pub kind: Option<ArtifactUpdateTag>,
    pub task_id: String,
    #[serde(default)]
    pub context_id: String,
    /// Whether the piece is appended to the artifact. CAIPE's agents omit it for chunks, so the default is `true`; for an
    /// unknown artifact it starts the artifact.
    pub append: Option<bool>,
    /// Whether this is the last piece.
    pub last_chunk: Option<bool>,
    /// The artifact, or a piece of it.
    pub artifact: Artifact,
    /// Free-form data.
    pub metadata: Option<Metadata>,
}

/// The tag, or the members that only one kind of event has.
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
