//! What an agent must offer to be served.

use std::sync::Arc;

use async_trait::async_trait;
use axum::http::{Extensions, HeaderMap};

use super::log::TaskLog;
use super::push::Pushes;
use crate::error::A2aError;
use crate::model::{AgentCard, ListTasksRequest, ListTasksResponse, Message, SendMessageRequest, Task};
use crate::version::ProtocolVersion;

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

/// What is known of a call besides its parameters.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The version that the client speaks.
    pub version: ProtocolVersion,
    /// The URIs of the extensions that the client declared (`A2A-Extensions`, `X-A2A-Extensions`).
    pub declared_extensions: Vec<String>,
    /// Who calls, if an outer layer found out.
    pub principal: Option<Principal>,
    /// The request's headers, for example `traceparent`.
    pub headers: HeaderMap,
    /// What outer layers found out, for example who calls.
    pub extensions: Extensions,
}

/// Who calls. An outer layer that authenticates puts it into the request's extensions; tasks are scoped to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(pub Arc<str>);

impl Principal {
    /// A caller by name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The caller's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What became of a message.
#[derive(Debug, Clone)]
pub enum Sent {
    /// A task carries it on: read of it here.
    Task(Subscription),
    /// A direct answer, without any task.
    Message(Box<Message>),
}

impl From<Subscription> for Sent {
    fn from(subscription: Subscription) -> Self {
        Self::Task(subscription)
    }
}

impl From<Message> for Sent {
    fn from(message: Message) -> Self {
        Self::Message(Box::new(message))
    }
}

/// Where to read of a task.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// The task's log.
    pub log: Arc<TaskLog>,
    /// The last sequence number that the client needs no more. 0 reads the log from its start, whose first
    /// event is the task itself; with any other number the stream begins with the task as it was then.
    pub after: u64,
}

impl Subscription {
    /// Everything from the start: what a new task's client wants.
    pub const fn from_start(log: Arc<TaskLog>) -> Self {
        Self { log, after: 0 }
    }

    /// The task as it is, then what is new.
    pub fn from_now(log: Arc<TaskLog>) -> Self {
        let after = log.last_seq();
        Self { log, after }
    }

    /// What comes after `after`, or what is new if `None`. A number that the log has not reached means now.
    pub fn after(log: Arc<TaskLog>, after: Option<u64>) -> Self {
        let last = log.last_seq();
        let after = after.map_or(last, |after| after.min(last));
        Self { log, after }
    }
}
