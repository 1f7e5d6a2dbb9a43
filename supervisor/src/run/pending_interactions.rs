//! The tasks that wait for a person, the agents that ask in them, and the approvers that may answer them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use caipe_engine::{AgentName, CallKind, CallStatus, Form, RunState};
use caipe_store::{TaskFilter, TaskPhase, TaskRecord};
use jiff::Timestamp;

use super::approvers::approvers;
use super::caller::Caller;
use super::error::RunError;
use super::service::Runs;
use super::start::RunTrigger;
use crate::agent::Agent;
use crate::binding::Request;

/// The most waiting tasks that are attributed to agents.
const MOST: usize = 500;

impl Runs {
    /// The number of tasks that wait for a person.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn pending_interactions(&self) -> Result<u64, RunError> {
        Ok(self.store.count_tasks(&TaskFilter { phases: waiting(), ..TaskFilter::default() }).await?)
    }

    /// Rejects the questions that were asked before this time and that nobody has answered, and continues their tasks. Returns
    /// how many tasks there are.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn reject_unanswered(self: &Arc<Self>, before: Timestamp) -> Result<usize, RunError> {
        let filter = TaskFilter { phases: waiting(), ..TaskFilter::default() };
        let mut rejected = 0;
        for task in self.store.tasks(&filter).await?.into_iter().filter(|task| task.updated < before) {
            // Otherwise an answer or a cancellation has just come.
            let Ok(lease) = self.active_tasks.lease(&task.id) else { continue };
            let Ok((event_log, turn)) = self.take_over(&task.id, &task.context, lease).await else {
                continue;
            };
            if event_log.phase() == TaskPhase::InputRequired && event_log.record().updated < before {
                rejected += 1;
                self.spawn(event_log, turn, RunTrigger::Expire);
            }
        }
        Ok(rejected)
    }

    /// The waiting tasks by the agent that asks. Such an agent still has work.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn pending_interactions_by_agent(&self) -> Result<BTreeMap<AgentName, u64>, RunError> {
        let filter = TaskFilter { phases: waiting(), limit: MOST, ..TaskFilter::default() };
        let (mut known, mut counts) = (HashMap::new(), BTreeMap::new());
        for task in self.store.tasks(&filter).await? {
            let asking_agents = if let Some(known) = self.asking_agents.get(&task) {
                known
            } else {
                let name = &self.supervisor.get().name;
                asking_agents(&self.conversations.load(&task.context, name).await?.0).into()
            };
            for agent in asking_agents.iter() {
                *counts.entry(agent.clone()).or_default() += 1;
            }
            known.insert((task.id, task.updated), asking_agents);
        }
        self.asking_agents.replace(known);
        Ok(counts)
    }
}

impl Runs {
    /// Admits a caller to read or answer a task: its owner, an approver whose decision the task waits for, and an approver that
    /// has decided in it. For all others the task is unknown.
    ///
    /// # Errors
    /// [`RunError::UnknownTask`], or when the store cannot be read.
    pub async fn admit_participant(&self, caller: &Caller, id: &str) -> Result<(), RunError> {
        let refused = match self.admit(caller.owner.as_deref(), id).await {
            Err(refused @ RunError::UnknownTask(_)) => refused,
            other => return other,
        };
        let supervisor = self.supervisor.get();
        if caller.listed(supervisor.all_approvers()).next().is_none() {
            return Err(refused);
        }
        let record = self.record(id).await?;
        let takes_part = has_decided(&record, caller) || self.waits_for(&record, caller, &supervisor).await?;
        if takes_part { Ok(()) } else { Err(refused) }
    }

    /// Whether an approval waits for the caller.
    async fn waits_for(
        &self,
        record: &TaskRecord,
        caller: &Caller,
        supervisor: &Agent,
    ) -> Result<bool, RunError> {
        if record.phase != TaskPhase::InputRequired {
            return Ok(false);
        }
        let (state, _) = self.conversations.load(&record.context, &supervisor.name).await?;
        let mut calls = state.questions().into_iter().flat_map(Form::calls).filter(Form::is_approval);
        Ok(calls.any(|call| caller.listed(approvers(supervisor, &state, &call).iter()).next().is_some()))
    }
}

/// Whether a task has received a message of the caller as an approver.
fn has_decided(record: &TaskRecord, caller: &Caller) -> bool {
    let mut replies = record.replies.iter().filter_map(|reply| Request::of_stored(&reply.message).ok());
    replies.any(|reply| reply.sent_by == caller.principal && !reply.approver_as.is_empty())
}

fn waiting() -> Vec<TaskPhase> {
    vec![TaskPhase::InputRequired]
}

/// The agents that a conversation waits for.
fn asking_agents(state: &RunState) -> Vec<AgentName> {
    let asker = |call: &caipe_engine::PendingCall| match (&call.kind, &call.status) {
        (CallKind::Delegation { agent }, CallStatus::Waiting { .. }) => Some(agent.clone()),
        _ => None,
    };
    state.calls.iter().filter_map(asker).collect()
}
