//! Text that an owner shows before it is stored, for the readers of its task at other processes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::event_chunk::EventChunk;

/// Most chunks that wait for a slow reader. It reads the missing ones from the store.
const QUEUE: usize = 256;

/// The readers of live events in this process, by task.
#[derive(Debug, Default)]
pub(crate) struct LiveReaders(Mutex<HashMap<String, broadcast::Sender<Arc<EventChunk>>>>);

/// The live events of one task. Some may be missing.
#[derive(Debug)]
pub struct LiveEvents {
    task: String,
    receiver: broadcast::Receiver<Arc<EventChunk>>,
    readers: Arc<LiveReaders>,
}

impl LiveReaders {
    /// The live events of a task from now on.
    pub(crate) fn read(self: &Arc<Self>, task: &str) -> LiveEvents {
        let mut readers = self.lock();
        let sender = readers.entry(task.to_owned()).or_insert_with(|| broadcast::Sender::new(QUEUE));
        LiveEvents { task: task.to_owned(), receiver: sender.subscribe(), readers: self.clone() }
    }

    pub(crate) fn has(&self, task: &str) -> bool {
        self.lock().contains_key(task)
    }

    /// The tasks that are read.
    pub(crate) fn tasks(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    pub(crate) fn deliver(&self, task: &str, events: EventChunk) {
        if let Some(sender) = self.lock().get(task) {
            let _ = sender.send(Arc::new(events));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, broadcast::Sender<Arc<EventChunk>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveEvents {
    /// Waits for the next events. Cancel safe.
    pub(crate) async fn next(&mut self) -> Arc<EventChunk> {
        loop {
            match self.receiver.recv().await {
                Ok(events) => return events,
                Err(RecvError::Lagged(_)) => {}
                // Not while this value exists, because the sender is removed with its last reader.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

impl Drop for LiveEvents {
    fn drop(&mut self) {
        let mut readers = self.readers.lock();
        if readers.get(&self.task).is_some_and(|sender| sender.receiver_count() <= 1) {
            readers.remove(&self.task);
        }
    }
}
