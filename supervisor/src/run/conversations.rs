//! One run at a time per conversation, and its state as last saved.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use caipe_engine::{AgentName, Input, Phase, RunState, decide};
use caipe_store::{Store, StoreError};
use futures::FutureExt;
use tokio::sync::OwnedMutexGuard;

/// The conversations of this process.
#[derive(Debug)]
pub(super) struct Conversations {
    store: Arc<dyn Store>,
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// A place in a conversation's queue. Once acquired, it is the right to run until it is dropped.
pub(super) struct Turn {
    guard: Option<OwnedMutexGuard<()>>,
    waiting: Option<Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>>>,
    context: String,
    owner: Arc<Conversations>,
}

impl Conversations {
    pub(super) fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, turns: Mutex::default() })
    }

    /// Takes a place in the queue, at once: places are called in the order in which they were taken.
    pub(super) fn queue(self: &Arc<Self>, context: &str) -> Turn {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = turns.entry(context.to_owned()).or_default().clone();
        let mut waiting: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(lock.lock_owned());
        // The lock is fair from the first time that it is asked for.
        let guard = waiting.as_mut().now_or_never();
        let waiting = guard.is_none().then_some(waiting);
        Turn { guard, waiting, context: context.to_owned(), owner: self.clone() }
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

/// Ends a run that could not be saved before its task ended. The conversation accepts no message before that.
pub(super) fn end_lost_run(state: &mut RunState) {
    if matches!(state.phase, Phase::Model { .. } | Phase::Calls) {
        drop(decide(state, Input::Cancel));
    }
}

impl Turn {
    /// Waits until it is this place's turn; returns at once if it is already.
    pub(super) async fn acquired(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            self.guard = Some(waiting.await);
            self.waiting = None;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop((self.guard.take(), self.waiting.take()));
        let mut turns = self.owner.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // A waiting turn holds another reference.
        if turns.get(&self.context).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            turns.remove(&self.context);
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("context", &self.context).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "conversations_tests.rs"]
mod tests;
