//! The queue of supervisors to reconcile.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::{Stream, stream};
use tokio::sync::Notify;

use crate::key::Key;

/// A queue without duplicates, so that the number of resources bounds it.
#[derive(Debug, Default)]
pub struct WorkQueue {
    keys: Mutex<BTreeSet<Key>>,
    filled: Notify,
}

impl WorkQueue {
    /// Queues a supervisor.
    pub fn add(&self, key: Key) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        self.filled.notify_one();
    }

    /// The number of queued supervisors.
    pub fn len(&self) -> usize {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn take(&self) -> Option<Key> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }

    async fn next(&self) -> Key {
        loop {
            if let Some(key) = self.take() {
                return key;
            }
            self.filled.notified().await;
        }
    }

    /// The queued supervisors as a stream, for one reader.
    pub fn stream(self: Arc<Self>) -> impl Stream<Item = Key> + Send {
        stream::unfold(self, |queue| async move {
            let key = queue.next().await;
            Some((key, queue))
        })
    }
}
