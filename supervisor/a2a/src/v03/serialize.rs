//! Writes the canonical model in the JSON of 0.3, without a copy of it, because a stream writes every event.

use jiff::Timestamp;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::PushConfig;
use super::convert::WRAPPED;
use crate::model::{self, Content, Metadata, timestamp};

/// An event of a stream, in the JSON of 0.3. A stream ends where the task waits.
pub fn event(event: &model::Event) -> impl Serialize + '_ {
    event_of(event, true)
}

/// An event of a stream, in the JSON of 0.3. `ends` is whether the stream ends with an event that makes the task wait:
/// a client closes its connection at `final` and would miss later events.
pub fn event_of(event: &model::Event, ends: bool) -> impl Serialize + '_ {
    match event {
        model::Event::Task(task) => Event::Task(task),
        model::Event::Message(message) => Event::Message(message),
        model::Event::StatusUpdate(update) => Event::StatusUpdate(StatusUpdate::of(update, ends)),
        model::Event::ArtifactUpdate(update) => Event::ArtifactUpdate(update),
    }
}

/// A task, in the JSON of 0.3.
pub fn task(task: &model::Task) -> impl Serialize + '_ {
    Event::Task(task)
}

/// A message, in the JSON of 0.3.
pub fn message(message: &model::Message) -> impl Serialize + '_ {
    Event::Message(message)
}

/// The parameters of `message/send` and `message/stream`.
pub fn send_params(request: &model::SendMessageRequest) -> impl Serialize + '_ {
    let configuration = request.configuration.as_ref();
    SendParams {
        message: &request.message,
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
    #[serde(serialize_with = "Message::serialize")]
    message: &'a model::Message,
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
    Task(#[serde(serialize_with = "Task::serialize")] &'a model::Task),
    Message(#[serde(serialize_with = "Message::serialize")] &'a model::Message),
    StatusUpdate(StatusUpdate<'a>),
    ArtifactUpdate(#[serde(serialize_with = "ArtifactUpdate::serialize")] &'a model::TaskArtifactUpdateEvent),
}

// The structs with a `remote` attribute list the fields of a type of the model as 0.3 writes them.

#[derive(Serialize)]
#[serde(remote = "model::Task", tag = "kind", rename = "task", rename_all = "camelCase")]
struct Task {
    id: String,
    context_id: String,
    #[serde(with = "Status")]
    status: model::TaskStatus,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "artifacts")]
    artifacts: Vec<model::Artifact>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "messages")]
    history: Vec<model::Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
}

#[derive(Serialize)]
#[serde(remote = "model::TaskStatus")]
struct Status {
    #[serde(serialize_with = "state")]
    state: model::TaskState,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "optional_message")]
    message: Option<model::Message>,
    #[serde(with = "timestamp", skip_serializing_if = "Option::is_none")]
    timestamp: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(remote = "model::Message", tag = "kind", rename = "message", rename_all = "camelCase")]
#[allow(clippy::struct_field_names)]
struct Message {
    #[serde(serialize_with = "role")]
    role: model::Role,
    #[serde(serialize_with = "parts")]
    parts: Vec<model::Part>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reference_task_ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
}

#[derive(Serialize)]
#[serde(remote = "model::Artifact", rename_all = "camelCase")]
#[allow(clippy::struct_field_names)]
struct Artifact {
    artifact_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(serialize_with = "parts")]
    parts: Vec<model::Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extensions: Vec<String>,
}

#[derive(Serialize)]
#[serde(remote = "model::TaskArtifactUpdateEvent", tag = "kind", rename = "artifact-update")]
#[serde(rename_all = "camelCase")]
struct ArtifactUpdate {
    task_id: String,
    context_id: String,
    append: bool,
    last_chunk: bool,
    #[serde(with = "Artifact")]
    artifact: model::Artifact,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename = "status-update", rename_all = "camelCase")]
struct StatusUpdate<'a> {
    task_id: &'a str,
    context_id: &'a str,
    #[serde(rename = "final")]
    is_final: bool,
    #[serde(serialize_with = "Status::serialize")]
    status: &'a model::TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Metadata>,
}

impl<'a> StatusUpdate<'a> {
    fn of(update: &'a model::TaskStatusUpdateEvent, ends: bool) -> Self {
        let state = update.status.state;
        Self {
            task_id: &update.task_id,
            context_id: &update.context_id,
            is_final: state.is_terminal() || ends && state.is_interrupted(),
            status: &update.status,
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
    /// `None` for a part without content.
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

/// The metadata of a part, with or without the mark of data that is not an object.
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
    #[derive(Serialize)]
    struct Item<'a>(#[serde(serialize_with = "Artifact::serialize")] &'a model::Artifact);
    serializer.collect_seq(artifacts.iter().map(Item))
}

fn messages<S: Serializer>(messages: &[model::Message], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(messages.iter().map(Event::Message))
}

#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn optional_message<S: Serializer>(
    message: &Option<model::Message>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    message.as_ref().map(Event::Message).serialize(serializer)
}
