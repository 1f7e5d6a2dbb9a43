//! Serves the runs as an A2A agent.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use caipe_a2a::A2aError;
use caipe_a2a::model::{AgentCard, ListTasksRequest, ListTasksResponse, SendMessageRequest, Task};
use caipe_a2a::server::{Agent, CallContext, Principal, Pushes, Sent, Subscription};

use super::auth::KEY_HOLDER;
use super::listing::{self, ListError};
use crate::binding::{self, ACTIVITY_EXTENSION};
use crate::run::{RunError, Runs};

/// The header with the name of upstream's clients.
const CLIENT_SOURCE: &str = "x-client-source";

/// The name of upstream's web UI. After a crash it fetches the task and shows the text of all artifacts in a row.
const UPSTREAM_UI: &str = "caipe-ui";

/// The A2A agent of the server.
pub struct TaskApi {
    runs: Arc<Runs>,
    /// The public card and the extended card.
    cards: RwLock<[Arc<AgentCard>; 2]>,
    pushes: Option<Arc<Pushes>>,
}

impl TaskApi {
    /// Serves `runs` with `card`, and authenticated callers get the `extended` card.
    pub fn new(runs: Arc<Runs>, card: AgentCard, extended: AgentCard) -> Self {
        Self { runs, cards: RwLock::new([card, extended].map(Arc::new)), pushes: None }
    }

    /// Replaces the cards.
    pub fn show(&self, card: AgentCard, extended: AgentCard) {
        *self.cards.write().unwrap_or_else(PoisonError::into_inner) = [card, extended].map(Arc::new);
    }

    fn cards(&self) -> [Arc<AgentCard>; 2] {
        self.cards.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Enables push notifications.
    #[must_use]
    pub fn pushing(self, pushes: Option<Arc<Pushes>>) -> Self {
        Self { pushes, ..self }
    }
}

#[async_trait]
impl Agent for TaskApi {
    fn card(&self) -> Arc<AgentCard> {
        let [card, _] = self.cards();
        card
    }

    fn pushes(&self) -> Option<Arc<Pushes>> {
        self.pushes.clone()
    }

    async fn extended_card(&self, call: &CallContext) -> Result<Arc<AgentCard>, A2aError> {
        match call.principal {
            Some(_) => {
                let [_, extended] = self.cards();
                Ok(extended)
            }
            None => Err(A2aError::ExtendedAgentCardNotConfigured),
        }
    }

    async fn send(&self, request: SendMessageRequest, call: &CallContext) -> Result<Sent, A2aError> {
        let mut message = request.message;
        // Kept with the message: what a client asked for holds whichever process carries the task on.
        let asked = call.declared_extensions.iter().any(|uri| uri == ACTIVITY_EXTENSION);
        if asked && message.extensions.iter().all(|uri| uri != ACTIVITY_EXTENSION) {
            message.extensions.push(ACTIVITY_EXTENSION.to_owned());
        }
        let (log, after) = self.runs.send_for(caller(call), message).await.map_err(run_error)?;
        Ok(Subscription { log, after }.into())
    }

    async fn task(
        &self,
        id: &str,
        history_length: Option<u32>,
        call: &CallContext,
    ) -> Result<Task, A2aError> {
        self.runs.admit(caller(call), id).await.map_err(run_error)?;
        let mut task = self.runs.log(id).await.map_err(run_error)?.snapshot();
        task.trim_history(history_length);
        if call.headers.get(CLIENT_SOURCE).is_some_and(|source| source == UPSTREAM_UI) {
            binding::retain_answer(&mut task);
        }
        Ok(task)
    }

    async fn cancel(&self, id: &str, call: &CallContext) -> Result<Task, A2aError> {
        self.runs.admit(caller(call), id).await.map_err(run_error)?;
        self.runs.cancel(id).await.map_err(run_error)
    }

    /// A subscription to a waiting task returns the task and ends: see [`Runs::log`].
    async fn subscribe(
        &self,
        id: &str,
        after: Option<u64>,
        call: &CallContext,
    ) -> Result<Subscription, A2aError> {
        self.runs.admit(caller(call), id).await.map_err(run_error)?;
        let log = self.runs.log(id).await.map_err(run_error)?;
        Ok(Subscription::after(log, after))
    }

    async fn list(
        &self,
        request: ListTasksRequest,
        call: &CallContext,
    ) -> Result<ListTasksResponse, A2aError> {
        listing::page(&self.runs, &request, caller(call)).await.map_err(|error| match error {
            ListError::Request(error) => error,
            ListError::Run(error) => run_error(error),
        })
    }
}

/// The name of the caller, if callers are distinguished. Holders of the shared key are not: their tasks are
/// the same with it and without.
fn caller(call: &CallContext) -> Option<&str> {
    call.principal.as_ref().map(Principal::as_str).filter(|name| *name != KEY_HOLDER)
}

/// An error of a run in the protocol's words.
fn run_error(error: RunError) -> A2aError {
    match error {
        RunError::UnknownTask(id) => A2aError::TaskNotFound(id),
        RunError::NotOpen { .. } => A2aError::UnsupportedOperation(error.to_string()),
        RunError::NotCancelable { task, phase } => {
            A2aError::TaskNotCancelable { id: task, state: binding::state(phase) }
        }
        RunError::ContextMismatch { task } => {
            A2aError::invalid("message.contextId", format!("task {task} belongs to another context"))
        }
        RunError::Invalid(reason) => match reason.split_once(": ") {
            Some((field, reason)) => A2aError::invalid(field, reason),
            None => A2aError::invalid("message", reason),
        },
        RunError::Busy | RunError::Store(_) => A2aError::Internal(error.to_string()),
    }
}
