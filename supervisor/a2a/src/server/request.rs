//! Decoded requests and their results, the same for both bindings and versions.

use std::sync::Arc;

use serde::Serialize;

use super::call::Sent;
use crate::error::A2aError;
use crate::model::{
    AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, Reply, SendMessageRequest,
    SubscribeToTaskRequest, Task, TaskPushNotificationConfig,
};

/// A decoded and validated request.
#[derive(Debug)]
pub(super) enum Request {
    Send(SendMessageRequest),
    Stream(SendMessageRequest),
    Get(GetTaskRequest),
    List(ListTasksRequest),
    Cancel(CancelTaskRequest),
    /// With the number of the last event that the client has.
    Subscribe(SubscribeToTaskRequest, Option<u64>),
    ExtendedCard,
    CreatePush(TaskPushNotificationConfig),
    GetPush(GetTaskPushNotificationConfigRequest),
    ListPushes(ListTaskPushNotificationConfigsRequest),
    DeletePush(DeleteTaskPushNotificationConfigRequest),
}

/// The result of a request. Each binding encodes it.
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

/// The JSON of a result.
pub(super) fn encode<T: Serialize>(result: &T) -> Result<Vec<u8>, A2aError> {
    serde_json::to_vec(result).map_err(|error| unencodable(&error))
}

pub(super) fn unencodable(error: &serde_json::Error) -> A2aError {
    A2aError::Internal(format!("failed to encode the answer: {error}"))
}

/// The result of a spawned task.
pub(super) fn unless_panicked<T>(
    result: Result<Result<T, A2aError>, tokio::task::JoinError>,
) -> Result<T, A2aError> {
    result.unwrap_or_else(|error| {
        tracing::error!(%error, "the agent panicked");
        Err(A2aError::Internal("the agent failed to answer; its log says why".to_owned()))
    })
}
