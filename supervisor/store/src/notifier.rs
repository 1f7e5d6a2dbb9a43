//! Tells the readers of a task that it has changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// What a reader waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// New events, or another phase.
    Events,
    /// New control messages.
    Controls,
}

/// The readers that wait for changes, by task. A backend calls [`Notifier::notify`] after a change, whichever process made it.
#[derive(Debug, Default)]
pub struct Notifier(Mutex<HashMap<String, watch::Sender<()>>>);

/// The readers of a store that wait for changes.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    pub(crate) events: Arc<Notifier>,
    pub(crate) controls: Arc<Notifier>,
}

impl Watchers {
    /// The changes of a task from now on.
    pub(crate) fn watch(&self, task: &str, topic: Topic) -> Changes {
        match topic {
            Topic::Events => self.events.watch(task),
            Topic::Controls => self.controls.watch(task),
        }
    }

    /// Wakes all readers, after changes that may have been missed.
    pub(crate) fn notify_all(&self) {
        self.events.notify_all();
        self.controls.notify_all();
    }
}

/// The changes of one task.
#[derive(Debug)]
pub struct Changes {
    task: String,
    receiver: watch::Receiver<()>,
    notifier: Arc<Notifier>,
}

impl Notifier {
    /// The changes from now on.
    pub fn watch(self: &Arc<Self>, task: &str) -> Changes {
        let mut watched = self.lock();
        let sender = watched.entry(task.to_owned()).or_insert_with(|| watch::Sender::new(()));
        Changes { task: task.to_owned(), receiver: sender.subscribe(), notifier: self.clone() }
    }

    /// Wakes the readers of a task.
    pub fn notify(&self, task: &str) {
        let watched = self.lock();
        // Most of the time nobody watches, and this is called for each commit.
        if !watched.is_empty()
            && let Some(sender) = watched.get(task)
        {
            sender.send_replace(());
        }
    }

    /// Wakes all readers, after changes that nobody may have been told of.
    pub fn notify_all(&self) {
        self.lock().values().for_each(|sender| sender.send_replace(()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Changes {
    /// Waits for a change since the last call. Several changes count as one. Cancel safe.
    pub async fn changed(&mut self) {
        if self.receiver.changed().await.is_err() {
            // Not while this value exists, because the sender is removed with its last reader.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let mut watched = self.notifier.lock();
        if watched.get(&self.task).is_some_and(|sender| sender.receiver_count() <= 1) {
            watched.remove(&self.task);
        }
    }
}
