//! The queue of supervisors to reconcile.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{Stream, stream};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::key::Key;

/// A queue without duplicates, so that the number of resources bounds it. It is closed at first and while another
/// operator leads: a new leader reconciles everything anyway.
#[derive(Debug, Default)]
pub struct WorkQueue {
    inner: Mutex<Inner>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    open: bool,
    /// The supervisors that the controller has not taken.
    keys: BTreeSet<Key>,
    /// When each supervisor is due that the controller has taken, or reconciles again later.
    due: HashMap<Key, Instant>,
}

impl WorkQueue {
    /// Accepts supervisors from now on.
    pub fn open(&self) {
        self.inner().open = true;
    }

    /// Drops all supervisors, and ignores new ones.
    pub fn close(&self) {
        *self.inner() = Inner::default();
    }

    /// Queues a supervisor.
    pub fn add(&self, key: Key) {
        let mut inner = self.inner();
        if inner.open {
            inner.keys.insert(key);
            self.filled.notify_one();
        }
    }

    /// Records that the controller starts a reconcile after this time, unless it does so earlier.
    pub fn schedule(&self, key: &Key, wait: Duration) {
        let (mut inner, at) = (self.inner(), Instant::now() + wait);
        if inner.open {
            inner.due.entry(key.clone()).and_modify(|due| *due = at.min(*due)).or_insert(at);
        }
    }

    /// Records that a reconcile has begun.
    pub fn begin(&self, key: &Key) {
        self.inner().due.remove(key);
    }

    /// Drops a deleted supervisor.
    pub fn forget(&self, key: &Key) {
        let mut inner = self.inner();
        inner.keys.remove(key);
        inner.due.remove(key);
    }

    /// The number of supervisors that wait for a reconcile.
    pub fn len(&self) -> usize {
        let (inner, now) = (self.inner(), Instant::now());
        let due = inner.due.iter().filter(|(key, at)| **at <= now && !inner.keys.contains(*key));
        inner.keys.len() + due.count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn take(&self) -> Option<Key> {
        let key = self.inner().keys.pop_first()?;
        self.schedule(&key, Duration::ZERO);
        Some(key)
    }

    async fn next(&self) -> Key {
        loop {
            if let Some(key) = self.take() {
                return key;
            }
            self.filled.notified().await;
        }
    }

    /// The queued supervisors as a stream, for one reader. What it yields still waits until [`Self::begin`].
    pub fn stream(self: Arc<Self>) -> impl Stream<Item = Key> + Send {
        stream::unfold(self, |queue| async move {
            let key = queue.next().await;
            Some((key, queue))
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    fn key(name: &str) -> Key {
        Key::new("team", name)
    }

    #[tokio::test(start_paused = true)]
    async fn a_supervisor_waits_until_its_reconcile_begins() {
        let queue = Arc::new(WorkQueue::default());
        queue.open();
        queue.add(key("a"));
        queue.add(key("b"));
        let mut taken = std::pin::pin!(Arc::clone(&queue).stream());
        assert_eq!(taken.next().await, Some(key("a")));
        assert_eq!(taken.next().await, Some(key("b")));
        queue.add(key("a"));
        assert_eq!(queue.len(), 2, "the controller has taken both, and began neither");
        queue.begin(&key("b"));
        queue.schedule(&key("b"), Duration::from_secs(5));
        assert_eq!(queue.len(), 1, "b is not due yet");
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(queue.len(), 2);
        queue.forget(&key("a"));
        queue.forget(&key("b"));
        assert!(queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_standby_keeps_no_queue() {
        let queue = Arc::new(WorkQueue::default());
        queue.add(key("a"));
        queue.schedule(&key("a"), Duration::ZERO);
        assert!(queue.is_empty(), "it does not lead yet");
        queue.open();
        queue.add(key("a"));
        queue.close();
        assert!(queue.is_empty(), "it leads no more");
    }
}
