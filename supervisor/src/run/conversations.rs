//! One run at a time per conversation, and its state as last saved.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use caipe_engine::{AgentName, RunState, decide};
use caipe_store::{Store, StoreError};
use tokio::sync::OwnedMutexGuard;

/// The conversations of this process.
#[derive(Debug)]
pub(super) struct Conversations {
    store: Arc<dyn Store>,
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// The right to run in a conversation; others wait in the order they came.
#[derive(Debug)]
pub(super) struct Turn {
    guard: Option<OwnedMutexGuard<()>>,
    context: String,
    owner: Arc<Conversations>,
}

impl Conversations {
    /// The conversations in `store`.
    pub(super) fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, turns: Mutex::default() })
    }

    /// Waits until no other run of this process is under way in the conversation.
    pub(super) async fn turn(self: &Arc<Self>, context: &str) -> Turn {
        let lock = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.entry(context.to_owned()).or_default().clone()
        };
        Turn { guard: Some(lock.lock_owned().await), context: context.to_owned(), owner: self.clone() }
    }

    /// The conversation as last saved, or a new one of `agent`.
    pub(super) async fn load(&self, context: &str, agent: &AgentName) -> Result<RunState, StoreError> {
        let Some(saved) = self.store.conversation(context).await? else {
            return Ok(RunState::new(agent.clone()));
        };
        let mut state = saved.state;
        for input in saved.appends {
            // Its effects were carried out, or are by `Input::Recovered`.
            drop(decide(&mut state, input));
        }
        Ok(state)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.guard.take());
        let mut turns = self.owner.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever waits holds another reference.
        if turns.get(&self.context).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            turns.remove(&self.context);
        }
    }
}
