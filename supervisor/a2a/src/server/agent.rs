//! What an agent must offer to be served.

use std::sync::Arc;

use async_trait::async_trait;

use super::call::{CallContext, Sent, Subscription};
use super::push::Pushes;
use crate::error::A2aError;
use crate::model::{AgentCard, ListTasksRequest, ListTasksResponse, SendMessageRequest, Task};

/// An agent as the server sees it. It makes the task ids, runs the work on its own, and tells of it in a
/// [`TaskLog`]; a client that leaves cancels none of these calls.
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// What the agent says of itself. Asked for each request for a card, and to see what it offers.
    fn card(&self) -> Arc<AgentCard>;

    /// What the agent says of itself to callers it knows. Asked for only if the card's capabilities announce it.
    ///
    /// # Errors
    /// [`A2aError::ExtendedAgentCardNotConfigured`] if there is none for this caller, which is the default.
    async fn extended_card(&self, call: &CallContext) -> Result<Arc<AgentCard>, A2aError> {
        let _ = call;
        Err(A2aError::ExtendedAgentCardNotConfigured)
    }

    /// Answers a message at once, begins a task, or goes on with `request.message.task_id`. Returns as soon as
    /// the task is accepted, not when it ends.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`] for an unknown task, [`A2aError::UnsupportedOperation`] for one that has
    /// ended, [`A2aError::InvalidParams`] for a `contextId` that is not the task's.
    async fn send(&self, request: SendMessageRequest, call: &CallContext) -> Result<Sent, A2aError>;

    /// A task with at most `history_length` messages of history (`None`: all).
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`] for an unknown task and for one of somebody else.
    async fn task(&self, id: &str, history_length: Option<u32>, call: &CallContext)
    -> Result<Task, A2aError>;

    /// Stops a task and returns it. A task that is canceled already is returned as it is.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`]; [`A2aError::TaskNotCancelable`] if it has ended otherwise.
    async fn cancel(&self, id: &str, call: &CallContext) -> Result<Task, A2aError>;

    /// Where to read of a task: what comes after the sequence number `after`, or from now on if `None`.
    ///
    /// # Errors
    /// [`A2aError::TaskNotFound`].
    async fn subscribe(
        &self,
        id: &str,
        after: Option<u64>,
        call: &CallContext,
    ) -> Result<Subscription, A2aError>;

    /// Who keeps the tasks' push configurations and serves them. Asked for only if the card's capabilities
    /// announce push notifications; `None`, the default, refuses them.
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
