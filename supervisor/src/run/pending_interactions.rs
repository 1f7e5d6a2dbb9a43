//! The questions that wait for a human: how many there are, and whose.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use caipe_engine::{AgentName, CallKind, CallStatus, RunState};
use caipe_store::{TaskFilter, TaskPhase, TaskRecord};
use jiff::Timestamp;

use super::error::RunError;
use super::service::Runs;

/// The most questions that are looked into; more are not told apart by agent.
const MOST: usize = 500;

/// Who asks in the tasks that were looked into: a state is read once for each question.
#[derive(Debug, Default)]
pub(super) struct AskingAgents(Mutex<HashMap<State, Arc<[AgentName]>>>);

/// A task, as it was at a time.
type State = (String, Timestamp);

impl AskingAgents {
    fn known(&self, task: &TaskRecord) -> Option<Arc<[AgentName]>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(task.id.clone(), task.updated)).cloned()
    }

    /// Keeps what is known of these tasks, and forgets the rest.
    fn keep(&self, known: HashMap<(String, Timestamp), Arc<[AgentName]>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

impl Runs {
    /// The tasks that wait for a human.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn pending_interactions(&self) -> Result<u64, RunError> {
        Ok(self.store.count_tasks(&TaskFilter { phases: waiting(), ..TaskFilter::default() }).await?)
    }

    /// How many of them each agent has put that the one of these runs asked. The home of such an agent still has work.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn pending_interactions_by_agent(&self) -> Result<BTreeMap<AgentName, u64>, RunError> {
        let filter = TaskFilter { phases: waiting(), limit: MOST, ..TaskFilter::default() };
        let (mut known, mut counts) = (HashMap::new(), BTreeMap::new());
        for task in self.store.tasks(&filter).await? {
            let asking_agents = match self.asking_agents.known(&task) {
                Some(asking_agents) => asking_agents,
                None => {
                    asking_agents(&self.conversations.load(&task.context, &self.supervisor.get().name).await?)
                        .into()
                }
            };
            for agent in asking_agents.iter() {
                *counts.entry(agent.clone()).or_default() += 1;
            }
            known.insert((task.id, task.updated), asking_agents);
        }
        self.asking_agents.keep(known);
        Ok(counts)
    }
}

fn waiting() -> Vec<TaskPhase> {
    vec![TaskPhase::InputRequired]
}

/// The agents whose questions a conversation waits with.
fn asking_agents(state: &RunState) -> Vec<AgentName> {
    let asker = |call: &caipe_engine::PendingCall| match (&call.kind, &call.status) {
        (CallKind::Delegation { agent }, CallStatus::Waiting { .. }) => Some(agent.clone()),
        _ => None,
    };
    state.calls.iter().filter_map(asker).collect()
}
