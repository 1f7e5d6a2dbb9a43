//! Conversions to and from the tagged objects.

use super::{
    Artifact, ArtifactUpdate, Configuration, DataPart, FilePart, ListPushConfigs, ListTasks, Message, Part,
    Role, SendRequest, SendResponse, StatusUpdate, StreamResponse, Task, TaskPushConfig, TaskState,
    TaskStatus,
};
use crate::{model, v03};

impl From<Role> for v03::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Agent => Self::Agent,
        }
    }
}

impl From<v03::Role> for Role {
    fn from(role: v03::Role) -> Self {
        match role {
            v03::Role::User => Self::User,
            v03::Role::Agent => Self::Agent,
        }
    }
}

impl From<TaskState> for v03::TaskState {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::TaskStateSubmitted => Self::Submitted,
            TaskState::TaskStateWorking => Self::Working,
            TaskState::TaskStateCompleted => Self::Completed,
            TaskState::TaskStateFailed => Self::Failed,
            TaskState::TaskStateCancelled => Self::Canceled,
            TaskState::TaskStateInputRequired => Self::InputRequired,
            TaskState::TaskStateRejected => Self::Rejected,
            TaskState::TaskStateAuthRequired => Self::AuthRequired,
            TaskState::TaskStateUnspecified => Self::Unknown,
        }
    }
}

impl From<v03::TaskState> for TaskState {
    fn from(state: v03::TaskState) -> Self {
        match state {
            v03::TaskState::Submitted => Self::TaskStateSubmitted,
            v03::TaskState::Working => Self::TaskStateWorking,
            v03::TaskState::Completed => Self::TaskStateCompleted,
            v03::TaskState::Failed => Self::TaskStateFailed,
            v03::TaskState::Canceled => Self::TaskStateCancelled,
            v03::TaskState::InputRequired => Self::TaskStateInputRequired,
            v03::TaskState::Rejected => Self::TaskStateRejected,
            v03::TaskState::AuthRequired => Self::TaskStateAuthRequired,
            v03::TaskState::Unknown => Self::TaskStateUnspecified,
        }
    }
}

/// What `ProtoJSON` writes for an unset text.
fn set(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

impl From<Part> for v03::Part {
    fn from(part: Part) -> Self {
        let file = part.file.map(|file| v03::File {
            name: set(file.name),
            mime_type: set(file.mime_type),
            bytes: file.file_with_bytes,
            uri: file.file_with_uri,
        });
        let data = part.data.map(|part| part.data);
        Self { kind: None, text: part.text, file, data, metadata: part.metadata }
    }
}

impl From<v03::Part> for Part {
    fn from(part: v03::Part) -> Self {
        let file = part.file.map(|file| FilePart {
            file_with_uri: file.uri,
            file_with_bytes: file.bytes,
            mime_type: file.mime_type,
            name: file.name,
        });
        let data = part.data.map(|data| DataPart { data });
        Self { text: part.text, file, data, metadata: part.metadata }
    }
}

impl From<Message> for v03::Message {
    fn from(message: Message) -> Self {
        Self {
            kind: Some(v03::MessageTag::Tag),
            role: message.role.into(),
            parts: all(message.content),
            message_id: message.message_id,
            task_id: set(message.task_id),
            context_id: set(message.context_id),
            reference_task_ids: Vec::new(),
            extensions: message.extensions,
            metadata: message.metadata,
        }
    }
}

/// The package has no `reference_task_ids`.
impl From<v03::Message> for Message {
    fn from(message: v03::Message) -> Self {
        Self {
            message_id: message.message_id,
            context_id: message.context_id,
            task_id: message.task_id,
            role: message.role.into(),
            content: all(message.parts),
            metadata: message.metadata,
            extensions: message.extensions,
        }
    }
}

fn all<From, To: std::convert::From<From>>(items: Vec<From>) -> Vec<To> {
    items.into_iter().map(Into::into).collect()
}

impl From<v03::TaskStatus> for TaskStatus {
    fn from(status: v03::TaskStatus) -> Self {
        Self {
            state: status.state.into(),
            message: status.message.map(Into::into),
            timestamp: status.timestamp,
        }
    }
}

impl From<v03::Artifact> for Artifact {
    fn from(artifact: v03::Artifact) -> Self {
        Self {
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            description: artifact.description,
            parts: all(artifact.parts),
            metadata: artifact.metadata,
            extensions: artifact.extensions,
        }
    }
}

impl From<v03::Task> for Task {
    fn from(task: v03::Task) -> Self {
        Self {
            id: task.id,
            context_id: task.context_id,
            status: task.status.into(),
            artifacts: all(task.artifacts),
            history: all(task.history),
            metadata: task.metadata,
        }
    }
}

impl From<v03::Event> for StreamResponse {
    fn from(event: v03::Event) -> Self {
        match event {
            v03::Event::Task(task) => Self::Task(Box::new((*task).into())),
            v03::Event::Message(message) => Self::Message(Box::new((*message).into())),
            v03::Event::StatusUpdate(update) => Self::StatusUpdate(StatusUpdate {
                task_id: update.task_id,
                context_id: update.context_id,
                status: update.status.into(),
                is_final: update.is_final,
                metadata: update.metadata,
            }),
            v03::Event::ArtifactUpdate(update) => Self::ArtifactUpdate(ArtifactUpdate {
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

impl From<model::Event> for StreamResponse {
    fn from(event: model::Event) -> Self {
        v03::Event::from(event).into()
    }
}

impl From<model::Task> for Task {
    fn from(task: model::Task) -> Self {
        v03::Task::from(task).into()
    }
}

impl From<model::Reply> for SendResponse {
    fn from(reply: model::Reply) -> Self {
        match reply {
            model::Reply::Task(task) => Self::Task(Box::new((*task).into())),
            model::Reply::Message(message) => Self::Message(Box::new(v03::Message::from(*message).into())),
        }
    }
}

impl From<model::ListTasksResponse> for ListTasks {
    fn from(page: model::ListTasksResponse) -> Self {
        Self {
            tasks: all(page.tasks),
            next_page_token: page.next_page_token,
            page_size: page.page_size,
            total_size: page.total_size,
        }
    }
}

impl From<SendRequest> for v03::SendParams {
    fn from(request: SendRequest) -> Self {
        Self {
            message: request.message.into(),
            configuration: request.configuration.map(Into::into),
            metadata: request.metadata,
        }
    }
}

impl From<Configuration> for v03::Configuration {
    fn from(configuration: Configuration) -> Self {
        Self {
            accepted_output_modes: configuration.accepted_output_modes,
            blocking: Some(configuration.blocking),
            history_length: configuration.history_length,
            push_notification_config: configuration.push_notification,
        }
    }
}

impl From<model::TaskPushNotificationConfig> for TaskPushConfig {
    fn from(config: model::TaskPushNotificationConfig) -> Self {
        let v03::TaskPushConfig { task_id, push_notification_config } = config.into();
        let id = push_notification_config.id.as_deref().unwrap_or_default();
        Self { name: format!("tasks/{task_id}/pushNotificationConfigs/{id}"), push_notification_config }
    }
}

impl From<model::ListTaskPushNotificationConfigsResponse> for ListPushConfigs {
    fn from(page: model::ListTaskPushNotificationConfigsResponse) -> Self {
        Self { configs: all(page.configs), next_page_token: page.next_page_token }
    }
}
