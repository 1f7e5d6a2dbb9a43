//! Decoded requests and their results, the same for both bindings and versions.

use std::sync::Arc;

use super::call::Sent;
use crate::error::A2aError;
use crate::model::{
    AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, Reply, SendMessageRequest,
    SubscribeToTaskRequest, Task, TaskPushNotificationConfig,
};

/// What a client asks for: decoded, validated, in the canonical model.
#[derive(Debug)]
pub(super) enum Request {
    Send(SendMessageRequest),
    Stream(SendMessageRequest),
    Get(GetTaskRequest),
    List(ListTasksRequest),
    Cancel(CancelTaskRequest),
    /// With the last event that the client has seen.
    Subscribe(SubscribeToTaskRequest, Option<u64>),
    ExtendedCard,
    CreatePush(TaskPushNotificationConfig),
    GetPush(GetTaskPushNotificationConfigRequest),
    ListPushes(ListTaskPushNotificationConfigsRequest),
    DeletePush(DeleteTaskPushNotificationConfigRequest),
}

/// What it comes to. Each binding writes it in its own form.
#[derive(Debug)]
pub(super) enum Outcome {
    Reply(Reply),
    Task(Box<Task>),
    Tasks(ListTasksResponse),
    Card(Arc<AgentCard>),
    Push(Box<TaskPushNotificationConfig>),
    Pushes(ListTaskPushNotificationConfigsResponse),
    PushDeleted,
    Stream(Sent),
}

/// What became of work in a task of its own.
pub(super) fn unless_panicked<T>(
    result: Result<Result<T, A2aError>, tokio::task::JoinError>,
) -> Result<T, A2aError> {
    result.unwrap_or_else(|error| {
        tracing::error!(%error, "the agent did not answer");
        Err(A2aError::Internal("the agent failed to answer; its log says why".to_owned()))
    })
}
