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
    /// The senders of the messages that are being admitted, by context.
    senders: Mutex<HashMap<String, Vec<Option<String>>>>,
}

/// The admission of a message to a context, until it is stored.
pub(super) struct Admission {
    context: String,
    sender: Option<String>,
    conversations: Arc<Conversations>,
}

/// A place in a conversation's queue. Once acquired, it is the right to run until it is dropped.
pub(super) struct Turn {
    place: MaybeDone<BoxFuture<'static, OwnedMutexGuard<()>>>,
    context: String,
    owner: Arc<Conversations>,
}

impl Conversations {
    pub(super) fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, turns: Mutex::default(), senders: Mutex::default() })
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

    /// Begins the admission of a message to a context; `None` if one of another sender is being admitted. A context without a
    /// stored task has no owner yet, so two senders could claim it at once.
    pub(super) fn admit(self: &Arc<Self>, context: &str, sender: Option<&str>) -> Option<Admission> {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = senders.entry(context.to_owned()).or_default();
        if sender.is_some() && admitted.iter().any(|other| other.as_deref() != sender) {
            return None;
        }
        let sender = sender.map(str::to_owned);
        admitted.push(sender.clone());
        Some(Admission { context: context.to_owned(), sender, conversations: self.clone() })
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

impl Drop for Admission {
    fn drop(&mut self) {
        let mut senders = self.conversations.senders.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(admitted) = senders.get_mut(&self.context) else { return };
        if let Some(at) = admitted.iter().position(|other| *other == self.sender) {
            admitted.swap_remove(at);
        }
        if admitted.is_empty() {
            senders.remove(&self.context);
        }
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
