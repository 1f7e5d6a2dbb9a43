//! The interface between the server and an agent.

use std::sync::Arc;

use async_trait::async_trait;

use super::call::{CallContext, Sent, Subscription};
use super::push::Pushes;
use crate::error::A2aError;
use crate::model::{AgentCard, ListTasksRequest, ListTasksResponse, SendMessageRequest, Task};

/// An agent. It assigns task ids, runs tasks in the background, and publishes their events in a
/// [`TaskLog`](super::TaskLog). A client that disconnects cancels none of these calls.
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// The public card, read for each request.
    fn card(&self) -> Arc<AgentCard>;

    /// The card for authenticated callers, if the card's capabilities announce it.
    ///
    /// # Errors
    /// [`A2aError::ExtendedAgentCardNotConfigured`] if there is none for this caller, which is the default.
    async fn extended_card(&self, call: &CallContext) -> Result<Arc<AgentCard>, A2aError> {
        let _ = call;
        Err(A2aError::ExtendedAgentCardNotConfigured)
    }

    /// Replies to a message, starts a task, or continues `request.message.task_id`. Returns once the task is accepted.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`] for an unknown task, [`A2aError::UnsupportedOperation`] for one that has
    /// ended, [`A2aError::InvalidParams`] for a `contextId` that is not the task's.
    async fn send(&self, request: SendMessageRequest, call: &CallContext) -> Result<Sent, A2aError>;

    /// A task with at most `history_length` messages of history (`None`: all).
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`] for an unknown task and for one of another principal.
    async fn task(&self, id: &str, history_length: Option<u32>, call: &CallContext)
    -> Result<Task, A2aError>;

    /// Checks that the caller may read and set the push configurations of a task. The default permits each caller that may
    /// read the task.
    ///
    /// # Errors
    /// As [`Agent::task`].
    async fn admit_pushes(&self, id: &str, call: &CallContext) -> Result<(), A2aError> {
        self.task(id, Some(0), call).await.map(drop)
    }

    /// Cancels a task and returns it. Returns a canceled task unchanged.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`]; [`A2aError::TaskNotCancelable`] if it has ended otherwise.
    async fn cancel(&self, id: &str, call: &CallContext) -> Result<Task, A2aError>;

    /// The events of a task after the number `after`, or new events if `None`.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`].
    async fn subscribe(
        &self,
        id: &str,
        after: Option<u64>,
        call: &CallContext,
    ) -> Result<Subscription, A2aError>;

    /// The push notifications, if the card's capabilities announce them. Without them the server rejects configurations.
    fn pushes(&self) -> Option<Arc<Pushes>> {
        None
    }

    /// A page of the caller's tasks, newest status first.
    ///
    /// # Errors
    /// [`A2aError::InvalidParams`] for a page token that this agent did not make.
    async fn list(
        &self,
        request: ListTasksRequest,
        call: &CallContext,
    ) -> Result<ListTasksResponse, A2aError>;
}
