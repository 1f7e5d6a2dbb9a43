//! One run at a time per conversation, and its state as last saved.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caipe_engine::{AgentName, Input, Phase, RunState, decide};
use caipe_store::{Changes, SavedConversation, Store, StoreError, Topic};
use futures::FutureExt as _;
use futures::future::{BoxFuture, MaybeDone, maybe_done};
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

use super::pauses::Pauses;

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
    /// Whether no other process runs a task of the conversation.
    is_taken: bool,
}

/// How long a place waits at most until it looks again whether another process still runs the conversation.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

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
        Turn { place, context: context.to_owned(), owner: self.clone(), is_taken: false }
    }

    /// The same in a new conversation, which is that of its first task.
    pub(super) fn queue_in_new(self: &Arc<Self>, context: &str) -> Turn {
        let mut turn = self.queue(context);
        turn.is_taken = true;
        turn
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
    /// Waits until it is this place's turn in this process; returns at once if it is already.
    pub(super) async fn reached(&mut self) {
        (&mut self.place).await;
    }

    /// Waits until no other task of the conversation runs, in this process or another one. The caller has the lease of the
    /// task.
    pub(super) async fn acquired(&mut self, task: &str) -> Result<(), StoreError> {
        self.reached().await;
        let mut pauses = Pauses::default();
        loop {
            match self.taken_by_another(task).await {
                Ok(None) => return Ok(()),
                Ok(Some(mut other)) => other.changed().await,
                Err(error) if error.is_transient() => pauses.wait(task, &error).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the turn from all processes, or returns the task of another process that has it.
    pub(super) async fn taken_by_another(&mut self, task: &str) -> Result<Option<OtherTask>, StoreError> {
        let store = &self.owner.store;
        if self.is_taken {
            return Ok(None);
        }
        let Some(other) = store.take_turn(&self.context, task).await? else {
            self.is_taken = true;
            return Ok(None);
        };
        let changes = store.watch(&other, Topic::Events).await?;
        // It may have ended before it was watched.
        self.is_taken = store.take_turn(&self.context, task).await?.is_none();
        Ok(Some(OtherTask(changes)).filter(|_| !self.is_taken))
    }
}

/// A task of another process that has the turn.
pub(super) struct OtherTask(Changes);

impl OtherTask {
    /// Waits until it may have ended.
    pub(super) async fn changed(&mut self) {
        drop(timeout(RECHECK_INTERVAL, self.0.changed()).await);
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
