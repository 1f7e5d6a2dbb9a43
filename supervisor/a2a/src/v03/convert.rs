//! Conversions to and from the canonical model. None of them fails: what 0.3 cannot say is left out, and a
//! part that says nothing becomes [`Content::Unknown`], which the server refuses.

use serde_json::Value;

use super::{
    Artifact, ArtifactUpdate, ArtifactUpdateTag, Configuration, Event, File, Message, MessageTag, Part,
    PartKind, Role, SendParams, StatusUpdate, StatusUpdateTag, Task, TaskIdParams, TaskQueryParams,
    TaskState, TaskStatus, TaskTag,
};
use crate::model::{self, Content, Metadata};

/// Marks data that is no object, which 0.3 cannot carry and which travels as `{"value": …}`. The official
/// SDKs use the same mark.
pub(super) const WRAPPED: &str = "data_part_compat";

impl From<Role> for model::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Agent => Self::Agent,
        }
    }
}

impl From<model::Role> for Role {
    fn from(role: model::Role) -> Self {
        match role {
            model::Role::User => Self::User,
            model::Role::Agent => Self::Agent,
        }
    }
}

impl From<TaskState> for model::TaskState {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Submitted => Self::Submitted,
            TaskState::Working => Self::Working,
            TaskState::InputRequired => Self::InputRequired,
            TaskState::Completed => Self::Completed,
            TaskState::Canceled => Self::Canceled,
            TaskState::Failed => Self::Failed,
            TaskState::Rejected => Self::Rejected,
            TaskState::AuthRequired => Self::AuthRequired,
            TaskState::Unknown => Self::Unspecified,
        }
    }
}

impl From<model::TaskState> for TaskState {
    fn from(state: model::TaskState) -> Self {
        match state {
            model::TaskState::Submitted => Self::Submitted,
            model::TaskState::Working => Self::Working,
            model::TaskState::InputRequired => Self::InputRequired,
            model::TaskState::Completed => Self::Completed,
            model::TaskState::Canceled => Self::Canceled,
            model::TaskState::Failed => Self::Failed,
            model::TaskState::Rejected => Self::Rejected,
            model::TaskState::AuthRequired => Self::AuthRequired,
            model::TaskState::Unspecified => Self::Unknown,
        }
    }
}

impl From<Part> for model::Part {
    fn from(part: Part) -> Self {
        let unknown = Self::from(Content::Unknown);
        let kind = part.kind();
        let Part { text, file, data, metadata, .. } = part;
        let converted = match kind {
            PartKind::Text => text.map(|text| Content::Text(text).into()),
            PartKind::File => file.and_then(file_part),
            PartKind::Data => data.map(|data| unwrapped(data, metadata.as_ref())),
            PartKind::Unknown => None,
        };
        let converted = converted.unwrap_or(unknown);
        let metadata = match converted.content {
            Content::Data(ref data) if !data.is_object() => metadata.and_then(unmarked),
            _ => metadata,
        };
        Self { metadata, ..converted }
    }
}

fn file_part(file: File) -> Option<model::Part> {
    let content = match (file.bytes, file.uri) {
        (Some(bytes), None) => Content::Raw(bytes),
        (None, Some(uri)) => Content::Url(uri),
        _ => return None,
    };
    Some(model::Part { content, filename: file.name, media_type: file.mime_type, metadata: None })
}

/// Unwraps only what [`wrapped`] made, so that an object of the same look stays as it is.
fn unwrapped(mut data: Metadata, metadata: Option<&Metadata>) -> model::Part {
    let marked = metadata.is_some_and(|metadata| metadata.get(WRAPPED) == Some(&Value::Bool(true)));
    let is_wrapper = marked && data.len() == 1 && data.get("value").is_some_and(|value| !value.is_object());
    let value = if is_wrapper { data.remove("value") } else { None };
    Content::Data(value.unwrap_or(Value::Object(data))).into()
}

fn unmarked(mut metadata: Metadata) -> Option<Metadata> {
    metadata.shift_remove(WRAPPED);
    (!metadata.is_empty()).then_some(metadata)
}

fn wrapped(value: Value, metadata: Option<Metadata>) -> (Metadata, Option<Metadata>) {
    match value {
        Value::Object(data) => (data, metadata),
        value => {
            let mut metadata = metadata.unwrap_or_default();
            // A user's own entry of this name is lost; shift, so that the rest keeps its order.
            metadata.shift_remove(WRAPPED);
            metadata.insert(WRAPPED.to_owned(), Value::Bool(true));
            (Metadata::from_iter([("value".to_owned(), value)]), Some(metadata))
        }
    }
}

/// `None` for a part that says nothing.
fn part_of(part: model::Part) -> Option<Part> {
    let model::Part { content, filename, media_type, metadata } = part;
    let file = File { name: filename, mime_type: media_type, ..File::default() };
    let base = Part { metadata, ..Part::default() };
    Some(match content {
        Content::Text(text) => Part { kind: Some(PartKind::Text), text: Some(text), ..base },
        Content::Raw(bytes) => {
            Part { kind: Some(PartKind::File), file: Some(File { bytes: Some(bytes), ..file }), ..base }
        }
        Content::Url(uri) => {
            Part { kind: Some(PartKind::File), file: Some(File { uri: Some(uri), ..file }), ..base }
        }
        Content::Data(value) => {
            let (data, metadata) = wrapped(value, base.metadata);
            Part { kind: Some(PartKind::Data), data: Some(data), metadata, ..Part::default() }
        }
        Content::Unknown => return None,
    })
}

impl From<Message> for model::Message {
    fn from(message: Message) -> Self {
        Self {
            message_id: message.message_id,
            context_id: message.context_id,
            task_id: message.task_id,
            role: message.role.into(),
            parts: message.parts.into_iter().map(Into::into).collect(),
            metadata: message.metadata,
            extensions: message.extensions,
            reference_task_ids: message.reference_task_ids,
        }
    }
}

impl From<model::Message> for Message {
    fn from(message: model::Message) -> Self {
        Self {
            kind: Some(MessageTag::Tag),
            role: message.role.into(),
            parts: message.parts.into_iter().filter_map(part_of).collect(),
            message_id: message.message_id,
            task_id: message.task_id,
            context_id: message.context_id,
            reference_task_ids: message.reference_task_ids,
            extensions: message.extensions,
            metadata: message.metadata,
        }
    }
}

impl From<TaskStatus> for model::TaskStatus {
    fn from(status: TaskStatus) -> Self {
        Self {
            state: status.state.into(),
            message: status.message.map(Into::into),
            timestamp: status.timestamp,
        }
    }
}

impl From<model::TaskStatus> for TaskStatus {
    fn from(status: model::TaskStatus) -> Self {
        Self {
            state: status.state.into(),
            message: status.message.map(Into::into),
            timestamp: status.timestamp,
        }
    }
}

impl From<Artifact> for model::Artifact {
    fn from(artifact: Artifact) -> Self {
        Self {
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            description: artifact.description,
            parts: artifact.parts.into_iter().map(Into::into).collect(),
            metadata: artifact.metadata,
            extensions: artifact.extensions,
        }
    }
}

impl From<model::Artifact> for Artifact {
    fn from(artifact: model::Artifact) -> Self {
        Self {
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            description: artifact.description,
            parts: artifact.parts.into_iter().filter_map(part_of).collect(),
            metadata: artifact.metadata,
            extensions: artifact.extensions,
        }
    }
}

impl From<Task> for model::Task {
    fn from(task: Task) -> Self {
        Self {
            id: task.id,
            context_id: task.context_id,
            status: task.status.into(),
            artifacts: task.artifacts.into_iter().map(Into::into).collect(),
            history: task.history.into_iter().map(Into::into).collect(),
            metadata: task.metadata,
        }
    }
}

impl From<model::Task> for Task {
    fn from(task: model::Task) -> Self {
        Self {
            kind: Some(TaskTag::Tag),
            id: task.id,
            context_id: task.context_id,
            status: task.status.into(),
            artifacts: task.artifacts.into_iter().map(Into::into).collect(),
            history: task.history.into_iter().map(Into::into).collect(),
            metadata: task.metadata,
        }
    }
}

impl From<Event> for model::Event {
    fn from(event: Event) -> Self {
        match event {
            Event::Task(task) => model::Task::from(*task).into(),
            Event::Message(message) => model::Message::from(*message).into(),
            Event::StatusUpdate(update) => Self::StatusUpdate(model::TaskStatusUpdateEvent {
                task_id: update.task_id,
                context_id: update.context_id,
                status: update.status.into(),
                metadata: update.metadata,
            }),
            Event::ArtifactUpdate(update) => Self::ArtifactUpdate(model::TaskArtifactUpdateEvent {
                task_id: update.task_id,
                context_id: update.context_id,
                artifact: update.artifact.into(),
                append: update.append.unwrap_or(true),
                last_chunk: update.last_chunk.unwrap_or(false),
                metadata: update.metadata,
            }),
        }
    }
}

impl From<model::Event> for Event {
    fn from(event: model::Event) -> Self {
        match event {
            model::Event::Task(task) => Self::Task(Box::new((*task).into())),
            model::Event::Message(message) => Self::Message(Box::new((*message).into())),
            model::Event::StatusUpdate(update) => Self::StatusUpdate(StatusUpdate {
                kind: Some(StatusUpdateTag::Tag),
                task_id: update.task_id,
                context_id: update.context_id,
                is_final: update.status.state.ends_stream(),
                status: update.status.into(),
                metadata: update.metadata,
            }),
            model::Event::ArtifactUpdate(update) => Self::ArtifactUpdate(ArtifactUpdate {
                kind: Some(ArtifactUpdateTag::Tag),
                task_id: update.task_id,
                context_id: update.context_id,
                append: Some(update.append),
                last_chunk: Some(update.last_chunk),
                artifact: update.artifact.into(),
                metadata: update.metadata,
            }),
        }
    }
}

impl From<SendParams> for model::SendMessageRequest {
    fn from(params: SendParams) -> Self {
        Self {
            tenant: None,
            message: params.message.into(),
            configuration: params.configuration.map(Into::into),
            metadata: params.metadata,
        }
    }
}

impl From<model::SendMessageRequest> for SendParams {
    fn from(request: model::SendMessageRequest) -> Self {
        Self {
            message: request.message.into(),
            configuration: request.configuration.map(Into::into),
            metadata: request.metadata,
        }
    }
}

impl From<Configuration> for model::SendMessageConfiguration {
    fn from(configuration: Configuration) -> Self {
        Self {
            accepted_output_modes: configuration.accepted_output_modes,
            task_push_notification_config: configuration.push_notification_config.map(Into::into),
            history_length: configuration.history_length,
            return_immediately: !configuration.blocking.unwrap_or(true),
        }
    }
}

impl From<model::SendMessageConfiguration> for Configuration {
    fn from(configuration: model::SendMessageConfiguration) -> Self {
        Self {
            accepted_output_modes: configuration.accepted_output_modes,
            blocking: Some(!configuration.return_immediately),
            history_length: configuration.history_length,
            push_notification_config: configuration.task_push_notification_config.map(Into::into),
        }
    }
}

impl From<TaskQueryParams> for model::GetTaskRequest {
    fn from(params: TaskQueryParams) -> Self {
        Self { tenant: None, id: params.id, history_length: params.history_length }
    }
}

impl From<TaskIdParams> for model::CancelTaskRequest {
    fn from(params: TaskIdParams) -> Self {
        Self { tenant: None, id: params.id, metadata: params.metadata }
    }
}

impl From<TaskIdParams> for model::SubscribeToTaskRequest {
    fn from(params: TaskIdParams) -> Self {
        Self { tenant: None, id: params.id }
    }
}
