//! Serves the runs as an A2A agent.

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use caipe_a2a::A2aError;
use caipe_a2a::model::{AgentCard, ListTasksRequest, ListTasksResponse, SendMessageRequest, Task};
use caipe_a2a::server::{Agent, CallContext, Principal, Pushes, Sent, Subscription};

use super::auth::KEY_HOLDER;
use super::listing;
use crate::binding::{self, ACTIVITY_EXTENSION};
use crate::run::{Caller, Person, RunError, Runs};

/// The header with the name of upstream's clients.
const CLIENT_SOURCE: &str = "x-client-source";

/// The name of upstream's web UI. After a crash it fetches the task and shows the text of all artifacts in a row.
const UPSTREAM_UI: &str = "caipe-ui";

/// The A2A agent of the server.
pub struct TaskApi {
    runs: Arc<Runs>,
    /// The public card and the extended card.
    cards: ArcSwap<[Arc<AgentCard>; 2]>,
    pushes: Option<Arc<Pushes>>,
}

impl TaskApi {
    /// Serves `runs` with the public card and the extended card, which authenticated callers get. `pushes` sends push
    /// notifications; `None` turns them off.
    pub fn new(runs: Arc<Runs>, cards: [AgentCard; 2], pushes: Option<Arc<Pushes>>) -> Self {
        Self { runs, cards: ArcSwap::from_pointee(cards.map(Arc::new)), pushes }
    }

    /// Replaces the cards.
    pub fn set_cards(&self, cards: [AgentCard; 2]) {
        self.cards.store(Arc::new(cards.map(Arc::new)));
    }
}

#[async_trait]
impl Agent for TaskApi {
    fn card(&self) -> Arc<AgentCard> {
        let [card, _] = &**self.cards.load();
        card.clone()
    }

    fn pushes(&self) -> Option<Arc<Pushes>> {
        self.pushes.clone()
    }

    async fn extended_card(&self, call: &CallContext) -> Result<Arc<AgentCard>, A2aError> {
        match call.principal {
            Some(_) => {
                let [_, extended] = &**self.cards.load();
                Ok(extended.clone())
            }
            None => Err(A2aError::ExtendedAgentCardNotConfigured),
        }
    }

    async fn send(&self, request: SendMessageRequest, call: &CallContext) -> Result<Sent, A2aError> {
        let mut message = request.message;
        // Stored with the message, so that it also holds for a process that continues the task.
        let asked = call.declared_extensions.iter().any(|uri| uri == ACTIVITY_EXTENSION);
        if asked && message.extensions.iter().all(|uri| uri != ACTIVITY_EXTENSION) {
            message.extensions.push(ACTIVITY_EXTENSION.to_owned());
        }
        let (log, after) = self.runs.send_as(&sender(call), message).await?;
        Ok(Subscription { log, after }.into())
    }

    async fn task(
        &self,
        id: &str,
        history_length: Option<u32>,
        call: &CallContext,
    ) -> Result<Task, A2aError> {
        self.runs.admit_participant(&sender(call), id).await?;
        let mut task = self.runs.log(id).await?.snapshot();
        task.trim_history(history_length);
        if call.headers.get(CLIENT_SOURCE).is_some_and(|source| source == UPSTREAM_UI) {
            binding::retain_answer(&mut task);
        }
        Ok(task)
    }

    /// Only the owner has events of its task sent elsewhere.
    async fn admit_pushes(&self, id: &str, call: &CallContext) -> Result<(), A2aError> {
        Ok(self.runs.admit(caller(call), id).await?)
    }

    async fn cancel(&self, id: &str, call: &CallContext) -> Result<Task, A2aError> {
        self.runs.admit(caller(call), id).await?;
        Ok(self.runs.cancel(id).await?)
    }

    /// A subscription to a waiting task returns the task and ends: see [`Runs::log`].
    async fn subscribe(
        &self,
        id: &str,
        after: Option<u64>,
        call: &CallContext,
    ) -> Result<Subscription, A2aError> {
        self.runs.admit_participant(&sender(call), id).await?;
        Ok(Subscription::after(self.runs.log(id).await?, after))
    }

    async fn list(
        &self,
        request: ListTasksRequest,
        call: &CallContext,
    ) -> Result<ListTasksResponse, A2aError> {
        listing::page(&self.runs, &request, caller(call)).await
    }
}

/// The sender of a message, from its credential only.
fn sender(call: &CallContext) -> Caller {
    Caller {
        owner: caller(call).map(str::to_owned),
        has_key: call.principal.as_ref().is_some_and(|principal| principal.as_str() == KEY_HOLDER),
        principal: call.principal.as_ref().map(|principal| principal.as_str().to_owned()),
        person: call.extensions.get::<Person>().cloned(),
    }
}

/// The name of the caller, if callers are distinguished. Holders of the shared key are not: their tasks are
/// the same with it and without.
fn caller(call: &CallContext) -> Option<&str> {
    call.principal.as_ref().map(Principal::as_str).filter(|name| *name != KEY_HOLDER)
}

impl From<RunError> for A2aError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::UnknownTask(id) => Self::TaskNotFound(id),
            RunError::NotOpen { .. } => Self::UnsupportedOperation(error.to_string()),
            RunError::NotCancelable { task, phase } => {
                Self::TaskNotCancelable { id: task, state: binding::state(phase) }
            }
            RunError::ContextMismatch { task } => {
                Self::invalid("message.contextId", format!("task {task} belongs to another context"))
            }
            RunError::Invalid(reason) => match reason.split_once(": ") {
                Some((field, reason)) => Self::invalid(field, reason),
                None => Self::invalid("message", reason),
            },
            RunError::NothingWaits => Self::invalid("message.parts", error.to_string()),
            RunError::Busy => Self::Internal(error.to_string()),
            RunError::Store(error) => {
                tracing::error!(%error, "a request fails because of the store");
                Self::Internal(error.to_string())
            }
        }
    }
}
