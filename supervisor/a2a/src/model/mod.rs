//! The canonical model: the objects of A2A 1.0 (`lf.a2a.v1`) in their JSON form.
//!
//! A writer uses the lowerCamelCase name of a field and omits default values. A reader follows `ProtoJSON`: it accepts the
//! lowerCamelCase name and the original name (`taskId`, `task_id`), `null` as the default value, and ignores unknown
//! members. Two names of one field in one object are a duplicate, which is an error.

mod artifact;
mod card;
mod event;
mod message;
mod part;
mod push;
mod request;
mod security;
mod serde_helpers;
mod task;

/// Free-form data that travels with an object.
pub type Metadata = serde_json::Map<String, serde_json::Value>;

/// Adds the newer members; they replace those of the same name.
pub(crate) fn extend_metadata(known: &mut Option<Metadata>, newer: Option<&Metadata>) {
    if let Some(newer) = newer {
        known.get_or_insert_default().extend(newer.clone());
    }
}

pub use artifact::Artifact;
pub use card::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider,
    AgentSkill,
};
pub use event::{Event, Reply, TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
pub use message::{Message, Role};
pub use part::{Content, Part};
pub use push::{
    AuthenticationInfo, DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    TaskPushNotificationConfig,
};
pub use request::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse, SendMessageConfiguration,
    SendMessageRequest, SubscribeToTaskRequest,
};
pub use security::{
    ApiKeyScheme, HttpAuthScheme, MtlsScheme, OAuth2Scheme, OAuthFlow, OAuthFlows, OpenIdConnectScheme,
    SecurityRequirement, SecurityScheme, StringList,
};
pub(crate) use serde_helpers::{nullable, timestamp};
pub use task::{Task, TaskState, TaskStatus};
