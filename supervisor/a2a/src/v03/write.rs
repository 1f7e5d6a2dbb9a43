//! Writes the canonical model in the JSON of 0.3, without a copy of it, because a stream writes every event.

use jiff::Timestamp;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::convert::WRAPPED;
use super::{ArtifactUpdateTag, MessageTag, PushConfig, StatusUpdateTag, TaskTag};
use crate::model::{self, Content, Metadata, timestamp};

/// An event of a stream, in the JSON of 0.3. A stream ends where the task waits.
pub fn event(event: &model::Event) -> impl Serialize + '_ {
    event_of(event, true)
}

/// An event of a stream, in the JSON of 0.3. `ends` is whether the stream ends with an event that makes the task wait:
/// a client closes its connection at `final` and would miss later events.
pub fn event_of(event: &model::Event, ends: bool) -> impl Serialize + '_ {
    match event {
        model::Event::Task(task) => Event::Task(Task::from(&**task)),
        model::Event::Message(message) => Event::Message(Message::from(&**message)),
        model::Event::StatusUpdate(update) => Event::StatusUpdate(StatusUpdate::of(update, ends)),
        model::Event::ArtifactUpdate(update) => Event::ArtifactUpdate(ArtifactUpdate::from(update)),
    }
}

/// A task, in the JSON of 0.3.
pub fn task(task: &model::Task) -> impl Serialize + '_ {
    Task::from(task)
}

/// A message, in the JSON of 0.3.
pub fn message(message: &model::Message) -> impl Serialize + '_ {
    Message::from(message)
}

/// The parameters of `message/send` and `message/stream`.
pub fn send_params(request: &model::SendMessageRequest) -> impl Serialize + '_ {
    let configuration = request.configuration.as_ref();
    SendParams {
        message: Message::from(&request.message),
        configuration: configuration.map(|configuration| Configuration {
            accepted_output_modes: &configuration.accepted_output_modes,
            blocking: !configuration.return_immediately,
            history_length: configuration.history_length,
            push_notification_config: configuration.task_push_notification_config.clone().map(Into::into),
        }),
        metadata: request.metadata.as_ref(),
    }
}

#[derive(Serialize)]
struct SendParams<'a> {
    message: Message<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<Configuration<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Configuration<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    accepted_output_modes: &'a [String],
    blocking: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    history_length: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    push_notification_config: Option<PushConfig>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Event<'a> {
    Task(Task<'a>),
    Message(Message<'a>),
    StatusUpdate(StatusUpdate<'a>),
    ArtifactUpdate(ArtifactUpdate<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    kind: TaskTag,
    id: &'a str,
    context_id: &'a str,
    status: Status<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "artifacts")]
    artifacts: &'a [model::Artifact],
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "messages")]
    history: &'a [model::Message],
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
}

impl<'a> From<&'a model::Task> for Task<'a> {
    fn from(task: &'a model::Task) -> Self {
        Self {
            kind: TaskTag::Tag,
            id: &task.id,
            context_id: &task.context_id,
            status: Status::from(&task.status),
            artifacts: &task.artifacts,
            history: &task.history,
            metadata: task.metadata.as_ref(),
        }
    }
}

#[derive(Serialize)]
struct Status<'a> {
    #[serde(serialize_with = "state")]
    state: model::TaskState,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message<'a>>,
    #[serde(with = "timestamp", skip_serializing_if = "Option::is_none")]
    timestamp: Option<Timestamp>,
}

impl<'a> From<&'a model::TaskStatus> for Status<'a> {
    fn from(status: &'a model::TaskStatus) -> Self {
        Self {
            state: status.state,
            message: status.message.as_ref().map(Message::from),
            timestamp: status.timestamp,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_field_names)]
struct Message<'a> {
    kind: MessageTag,
    #[serde(serialize_with = "role")]
    role: model::Role,
    #[serde(serialize_with = "parts")]
    parts: &'a [model::Part],
    #[serde(skip_serializing_if = "str::is_empty")]
    message_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reference_task_ids: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    extensions: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
}

impl<'a> From<&'a model::Message> for Message<'a> {
    fn from(message: &'a model::Message) -> Self {
        Self {
            kind: MessageTag::Tag,
            role: message.role,
            parts: &message.parts,
            message_id: &message.message_id,
            task_id: message.task_id.as_deref(),
            context_id: message.context_id.as_deref(),
            reference_task_ids: &message.reference_task_ids,
            extensions: &message.extensions,
            metadata: message.metadata.as_ref(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_field_names)]
struct Artifact<'a> {
    artifact_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(serialize_with = "parts")]
    parts: &'a [model::Part],
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    extensions: &'a [String],
}

impl<'a> From<&'a model::Artifact> for Artifact<'a> {
    fn from(artifact: &'a model::Artifact) -> Self {
        Self {
            artifact_id: &artifact.artifact_id,
            name: artifact.name.as_deref(),
            description: artifact.description.as_deref(),
            parts: &artifact.parts,
            metadata: artifact.metadata.as_ref(),
            extensions: &artifact.extensions,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusUpdate<'a> {
    kind: StatusUpdateTag,
    task_id: &'a str,
    context_id: &'a str,
    #[serde(rename = "final")]
    is_final: bool,
    status: Status<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
}

impl<'a> StatusUpdate<'a> {
    fn of(update: &'a model::TaskStatusUpdateEvent, ends: bool) -> Self {
        let state = update.status.state;
        Self {
            kind: StatusUpdateTag::Tag,
            task_id: &update.task_id,
            context_id: &update.context_id,
            is_final: state.is_terminal() || ends && state.is_interrupted(),
            status: Status::from(&update.status),
            metadata: update.metadata.as_ref(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactUpdate<'a> {
    kind: ArtifactUpdateTag,
    task_id: &'a str,
    context_id: &'a str,
    append: bool,
    last_chunk: bool,
    artifact: Artifact<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
}

impl<'a> From<&'a model::TaskArtifactUpdateEvent> for ArtifactUpdate<'a> {
    fn from(update: &'a model::TaskArtifactUpdateEvent) -> Self {
        Self {
            kind: ArtifactUpdateTag::Tag,
            task_id: &update.task_id,
            context_id: &update.context_id,
            append: update.append,
            last_chunk: update.last_chunk,
            artifact: Artifact::from(&update.artifact),
            metadata: update.metadata.as_ref(),
        }
    }
}

#[derive(Serialize)]
struct Part<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<File<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<PartMetadata<'a>>,
}

impl<'a> Part<'a> {
    /// `None` for a part that says nothing.
    fn of(part: &'a model::Part) -> Option<Self> {
        let metadata = part.metadata.as_ref().map(PartMetadata::Own);
        let bare = Self { kind: "", text: None, file: None, data: None, metadata };
        Some(match &part.content {
            Content::Text(text) => Self { kind: "text", text: Some(text), ..bare },
            Content::Raw(bytes) => {
                Self { kind: "file", file: Some(File::of(part, Some(bytes), None)), ..bare }
            }
            Content::Url(uri) => Self { kind: "file", file: Some(File::of(part, None, Some(uri))), ..bare },
            Content::Data(Value::Object(data)) => {
                Self { kind: "data", data: Some(Data::Object(data)), ..bare }
            }
            Content::Data(value) => Self {
                kind: "data",
                data: Some(Data::Wrapped { value }),
                metadata: Some(PartMetadata::Marked(part.metadata.as_ref())),
                ..bare
            },
            Content::Unknown => return None,
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
}

impl<'a> File<'a> {
    fn of(part: &'a model::Part, bytes: Option<&'a str>, uri: Option<&'a str>) -> Self {
        Self { name: part.filename.as_deref(), mime_type: part.media_type.as_deref(), bytes, uri }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Object(&'a Metadata),
    Wrapped { value: &'a Value },
}

/// A part's metadata, or the same with the mark of data that is no object.
enum PartMetadata<'a> {
    Own(&'a Metadata),
    Marked(Option<&'a Metadata>),
}

impl Serialize for PartMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let own = match self {
            Self::Own(own) => return own.serialize(serializer),
            Self::Marked(own) => own,
        };
        let mut map = serializer.serialize_map(None)?;
        let entries = own.iter().flat_map(|own| own.iter());
        for (name, value) in entries.filter(|(name, _)| *name != WRAPPED) {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry(WRAPPED, &true)?;
        map.end()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn state<S: Serializer>(state: &model::TaskState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(state)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn role<S: Serializer>(role: &model::Role, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match role {
        model::Role::User => "user",
        model::Role::Agent => "agent",
    })
}

fn parts<S: Serializer>(parts: &[model::Part], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(parts.iter().filter_map(Part::of))
}

fn artifacts<S: Serializer>(artifacts: &[model::Artifact], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(artifacts.iter().map(Artifact::from))
}

fn messages<S: Serializer>(messages: &[model::Message], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(messages.iter().map(Message::from))
}
