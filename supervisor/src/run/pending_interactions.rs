//! The tasks that wait for a person, and the agents that ask in them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use caipe_engine::{AgentName, CallKind, CallStatus, RunState};
use caipe_store::{TaskFilter, TaskPhase};
use jiff::Timestamp;

use super::error::RunError;
use super::service::Runs;
use super::start::RunTrigger;

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
