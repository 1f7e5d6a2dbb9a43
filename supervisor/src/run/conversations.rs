//! One run at a time per conversation, and its state as last saved.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use caipe_engine::{AgentName, Input, Phase, RunState, decide};
use caipe_store::{SavedConversation, Store, StoreError};
use futures::FutureExt as _;
use futures::future::{BoxFuture, MaybeDone, maybe_done};
use tokio::sync::OwnedMutexGuard;

/// The conversations of this process.
#[derive(Debug)]
pub(super) struct Conversations {
    store: Arc<dyn Store>,
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// A place in a conversation's queue. Once acquired, it is the right to run until it is dropped.
pub(super) struct Turn {
    place: MaybeDone<BoxFuture<'static, OwnedMutexGuard<()>>>,
    context: String,
    owner: Arc<Conversations>,
}

impl Conversations {
    pub(super) fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, turns: Mutex::default() })
    }

    /// Takes a place in the queue at once. Places are called in the order of these calls.
    pub(super) fn queue(self: &Arc<Self>, context: &str) -> Turn {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = turns.entry(context.to_owned()).or_default().clone();
        let mut place = maybe_done(lock.lock_owned().boxed());
        // The future has its place in the fair queue of the lock from its first poll on.
        let _ = (&mut place).now_or_never();
        Turn { place, context: context.to_owned(), owner: self.clone() }
    }

    /// The conversation as last saved, or a new one of `agent`, and what of it is stored.
    pub(super) async fn load(
        &self,
        context: &str,
        agent: &AgentName,
    ) -> Result<(RunState, SavedConversation), StoreError> {
        let (mut state, saved) = match self.store.conversation(context).await? {
            Some(stored) => stored.decode(context)?,
            None => (RunState::new(agent.clone()), SavedConversation::default()),
        };
        context.clone_into(&mut state.scope);
        state.identify_questions();
        Ok((state, saved))
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
        (&mut self.place).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.place = MaybeDone::Gone;
        let mut turns = self.owner.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // A waiting turn holds another reference.
        if turns.get(&self.context).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            turns.remove(&self.context);
        }
    }
}

#[cfg(test)]
#[path = "conversations_tests.rs"]
mod tests;
