//! Which supervisors want a pass.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::{Stream, stream};
use tokio::sync::Notify;

use crate::key::Key;

/// The supervisors that want a pass. A set: however often one is named, it is one entry, so that it needs no other bound
/// than the number of resources.
#[derive(Debug, Default)]
pub struct WorkQueue {
    keys: Mutex<BTreeSet<Key>>,
    filled: Notify,
}

impl WorkQueue {
    /// Names one.
    pub fn add(&self, key: Key) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        self.filled.notify_one();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether there is none.
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

    /// All of them, as they come. For one reader at a time.
    pub fn stream(self: Arc<Self>) -> impl Stream<Item = Key> + Send {
        stream::unfold(self, |queue| async move {
            let key = queue.next().await;
            Some((key, queue))
        })
    }
}
