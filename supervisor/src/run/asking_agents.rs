//! A cache of the agents that ask in waiting tasks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use caipe_engine::AgentName;
use caipe_store::TaskRecord;
use jiff::Timestamp;

/// The agents that ask in each waiting task, so that a conversation is read once for each question.
#[derive(Debug, Default)]
pub(super) struct AskingAgents(Mutex<HashMap<TaskVersion, Arc<[AgentName]>>>);

/// A task, and when it was updated.
type TaskVersion = (String, Timestamp);

impl AskingAgents {
    pub(super) fn get(&self, task: &TaskRecord) -> Option<Arc<[AgentName]>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(task.id.clone(), task.updated)).cloned()
    }

    /// Replaces all entries.
    pub(super) fn replace(&self, known: HashMap<TaskVersion, Arc<[AgentName]>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}
