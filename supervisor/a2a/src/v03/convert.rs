//! Conversions to the canonical model. None of them fails: a part without content becomes [`Content::Unknown`], which
//! the server rejects.

use serde_json::Value;

use super::{
    Artifact, Configuration, Event, File, Message, Part, PartKind, Role, SendParams, Task, TaskIdParams,
    TaskQueryParams, TaskState, TaskStatus,
};
use crate::model::{self, Content, Metadata};

/// Marks data that is not an object. 0.3 cannot represent it, so it is sent as `{"value": …}`. The official SDKs use the
/// same mark.
pub(super) const WRAPPED: &str = "data_part_compat";

impl From<Role> for model::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Agent => Self::Agent,
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

impl From<Part> for model::Part {
    fn from(part: Part) -> Self {
        let kind = part.kind();
        let Part { text, file, data, mut metadata, .. } = part;
        let converted = match kind {
            PartKind::Text => text.map(|text| Content::Text(text).into()),
            PartKind::File => file.and_then(file_part),
            PartKind::Data => data.map(|data| Content::Data(unwrapped(data, metadata.as_mut())).into()),
            PartKind::Unknown => None,
        };
        let converted = converted.unwrap_or_else(|| Self::from(Content::Unknown));
        if matches!(&converted.content, Content::Data(data) if !data.is_object()) {
            metadata.take_if(|metadata| metadata.is_empty());
        }
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

/// Unwraps data that [`wrapped`] has wrapped, and removes the mark. An unmarked object of the same shape stays.
pub(super) fn unwrapped(mut data: Metadata, metadata: Option<&mut Metadata>) -> Value {
    let marked = metadata.filter(|metadata| metadata.get(WRAPPED) == Some(&Value::Bool(true)));
    let is_wrapper = data.len() == 1 && data.get("value").is_some_and(|value| !value.is_object());
    let Some(metadata) = marked.filter(|_| is_wrapper) else { return Value::Object(data) };
    metadata.shift_remove(WRAPPED);
    data.remove("value").unwrap_or_default()
}

/// Wraps data that is not an object and marks it in the metadata. The mark replaces a client's own entry of that name.
pub(super) fn wrapped(value: Value, metadata: Option<Metadata>) -> (Metadata, Option<Metadata>) {
    match value {
        Value::Object(data) => (data, metadata),
        value => {
            let mut metadata = metadata.unwrap_or_default();
            // Moves the mark to the end and keeps the order of the others.
            metadata.shift_remove(WRAPPED);
            metadata.insert(WRAPPED.to_owned(), Value::Bool(true));
            (Metadata::from_iter([("value".to_owned(), value)]), Some(metadata))
        }
    }
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

impl From<TaskStatus> for model::TaskStatus {
    fn from(status: TaskStatus) -> Self {
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
