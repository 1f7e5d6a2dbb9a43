//! Work that one agent hands to another, and the trait of the object that carries it out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caipe_crds::resolve::MOST_LEVELS;
use caipe_engine::{
    AgentName, AlwaysAllowed, ApprovedCall, Budget, CallId, DelegateUpdate, DelegationOutcome, FileChanges,
    Form, Resume, ToolOutput,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The reason why a delegation fails that began at a placement which the agent has left.
pub(crate) const MOVED: &str = "it has moved to another placement while it was at work, and what it did there is not \
                                known here. Check what was done before you call it again.";

/// The task that a run works for.
#[derive(Debug, Clone, Default)]
pub struct RunInfo {
    /// The conversation that the user sees.
    pub context: Arc<str>,
    /// The task that the user sees.
    pub task: Arc<str>,
    /// The trace that the run belongs to.
    pub trace_id: Arc<str>,
    /// The delegations that led to the run, the first one first; none for a run that a person has asked for.
    pub parents: Arc<[ParentCall]>,
    /// The user's e-mail address, where known.
    pub user: Option<Arc<str>>,
    /// Tools that need a person's approval beside those that the agent's own specification names; the delegating
    /// supervisor demands them.
    pub require_approval: Arc<[String]>,
    /// The calls that a person has allowed for the rest of the conversation.
    pub always_allowed: Arc<AlwaysAllowed>,
    /// The calls of the agent that a person has approved with the form of a workflow.
    pub approved: Arc<[ApprovedCall]>,
    /// What is left for it of the budget of the run that delegates, if that run is limited. Without numbers, what it and its
    /// agents use is only counted.
    pub remaining: Option<Arc<Budget>>,
    /// Whether the client wants to read the text of the agents that work for it.
    pub agents_words: bool,
    /// The files that it shares with the run that delegates to it, if it does.
    pub scratchpad: Option<Scratchpad>,
    /// The tools that the client answers: the process that delegates the run to this one.
    pub client_tools: Arc<[String]>,
}

/// A call of a remote agent's tool that the client answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ClientCall {
    /// The id of the call in the agent's run.
    pub call: CallId,
    pub tool: String,
    pub arguments: Value,
}

/// The time that a client has for the answer to a call. It includes a restart of the client.
pub(crate) const CLIENT_CALL_TIME: Duration = Duration::from_mins(1);

/// The tools of a remote agent that this process answers, because they are about what only it has.
#[async_trait]
pub trait ClientTools: Send + Sync + fmt::Debug {
    /// Their names. There may be none at the time.
    fn names(&self) -> Vec<String>;

    /// Answers a call of the agent to which this run delegates. Calls may be repeated.
    async fn call(&self, asked: ClientCall, run: RunInfo, cancel: CancellationToken) -> ToolOutput;
}

/// The files that an agent shares with the run that delegates to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scratchpad {
    /// Those of the delegating run, by path.
    pub files: Arc<BTreeMap<String, String>>,
    /// Whether the agent may change them.
    pub is_writable: bool,
}

impl Scratchpad {
    /// The update for what an agent has changed; `None` if it must not or has not.
    pub(crate) fn update(shared: Option<&Self>, files: FileChanges) -> Option<DelegateUpdate> {
        let is_taken = !files.is_empty() && shared.is_some_and(|shared| shared.is_writable);
        is_taken.then_some(DelegateUpdate::Scratchpad { files })
    }
}

/// A delegation on the way to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentCall {
    /// The call of the delegating agent; empty if it is in another process.
    pub call: CallId,
    /// The agent that got the task.
    pub agent: AgentName,
}

impl RunInfo {
    /// Whether the run may delegate to an agent: it has not the task already, and the chain is not too long.
    pub fn may_delegate_to(&self, agent: &AgentName) -> bool {
        self.parents.len() < MOST_LEVELS && self.parents.iter().all(|parent| parent.agent != *agent)
    }
}

impl Delegation {
    /// The delegations that led to the run of the agent.
    pub(crate) fn path(&self) -> Arc<[ParentCall]> {
        let own = ParentCall { call: self.call.clone(), agent: self.agent.clone() };
        self.run.parents.iter().cloned().chain([own]).collect()
    }
}

/// A task for another agent.
#[derive(Debug, Clone)]
pub struct Delegation {
    /// The call that asks for it.
    pub call: CallId,
    pub agent: AgentName,
    pub prompt: String,
    /// Where the delegation stopped, if it was started before.
    pub resume: Option<Resume>,
    /// The run that it is part of.
    pub run: RunInfo,
}

/// Progress of a delegation.
#[derive(Debug)]
pub struct DelegationEvent {
    /// The progress.
    pub update: DelegateUpdate,
    /// Signalled once the delegating run has committed the update; dropped if it never will.
    pub committed: Option<oneshot::Sender<()>>,
}

impl DelegationEvent {
    /// An event, and the signal that it was committed.
    pub fn acknowledged(update: DelegateUpdate) -> (Self, oneshot::Receiver<()>) {
        let (committed, signal) = oneshot::channel();
        (Self { update, committed: Some(committed) }, signal)
    }
}

impl From<DelegateUpdate> for DelegationEvent {
    fn from(update: DelegateUpdate) -> Self {
        Self { update, committed: None }
    }
}

#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each delegation")]
pub enum DelegationEnd {
    /// The agent finished, failed or was canceled.
    Finished(DelegationOutcome),
    /// The agent waits for a person.
    Asks(Form),
}

impl DelegationEnd {
    pub const CANCELED: Self = Self::Finished(DelegationOutcome::Canceled);

    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Finished(DelegationOutcome::Failed { reason: reason.into() })
    }

    /// A bounded name for metric labels.
    pub const fn category(&self) -> &'static str {
        match self {
            Self::Finished(DelegationOutcome::Completed { .. }) => "ok",
            Self::Finished(DelegationOutcome::Failed { .. }) => "failed",
            Self::Finished(DelegationOutcome::Canceled) => "canceled",
            Self::Asks(_) => "asks",
        }
    }
}

impl From<DelegationEnd> for DelegateUpdate {
    fn from(end: DelegationEnd) -> Self {
        match end {
            DelegationEnd::Finished(outcome) => Self::Finished { outcome },
            DelegationEnd::Asks(form) => Self::Asks { form },
        }
    }
}

/// Carries out delegations to one agent. Every backend sends the same events for the same work.
#[async_trait]
pub trait AgentBackend: Send + Sync + fmt::Debug {
    /// Starts the work, or resumes it, and returns how it ends. Cancelling the token stops the work, at a remote agent
    /// too. Dropping the future ends what this process does for it; a remote agent continues, and the delegation can be
    /// resumed.
    async fn run(
        &self,
        delegation: Delegation,
        events: mpsc::Sender<DelegationEvent>,
        cancel: CancellationToken,
    ) -> DelegationEnd;

    /// Cancels a task that a remote agent has accepted. Returns once the agent has answered, also if it answers that the task
    /// cannot be canceled because it has ended.
    ///
    /// # Errors
    /// A reason without a credential, if the agent has not answered the call.
    async fn cancel_task(&self, task: &str) -> Result<(), String>;
}

/// All questions of an agent as one form, which names the agent: the user talks to the supervisor only. What the agent says is
/// marked as its words, so that it cannot ask in the name of another.
pub(crate) fn one_form(agent: &str, questions: Vec<Form>) -> Form {
    let signed = |form: Form| {
        let description = match (form.description.strip_prefix("The agent wants"), form.description.trim()) {
            (Some(rest), _) => format!("The agent {agent} wants{rest}"),
            (None, "") => format!("The agent {agent} asks for information."),
            (None, words) => format!("The agent {agent} asks: {words}"),
        };
        Form { description, ..form }.of_delegate()
    };
    Form::joined(questions.into_iter().map(signed).collect())
}

#[cfg(test)]
pub(crate) mod testing {
    use futures::StreamExt as _;
    use futures::stream::{BoxStream, unfold};
    use tokio_util::task::AbortOnDropHandle;

    use super::*;

    /// Runs a delegation. The last event is its end; dropping the stream drops the delegation.
    pub(crate) fn run(
        backend: Arc<dyn AgentBackend>,
        delegation: Delegation,
        cancel: CancellationToken,
    ) -> BoxStream<'static, DelegationEvent> {
        let (events, received) = mpsc::channel(64);
        let sender = events.clone();
        let work = async move {
            let end = backend.run(delegation, events, cancel).await;
            drop(sender.send(DelegateUpdate::from(end).into()).await);
        };
        let work = AbortOnDropHandle::new(tokio::spawn(work));
        let next = |(mut received, work): (mpsc::Receiver<_>, _)| async {
            received.recv().await.map(|event| (event, (received, work)))
        };
        unfold((received, work), next).boxed()
    }
}
