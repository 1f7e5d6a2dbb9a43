//! The queue of supervisors to reconcile.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::key::Key;

/// A queue without duplicates, so that the number of resources bounds it, in the order in which the supervisors are due.
/// It is closed at first and while another operator leads: a new leader reconciles everything anyway.
#[derive(Debug, Default)]
pub struct WorkQueue {
    inner: Mutex<Inner>,
    sooner: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    open: bool,
    /// When each supervisor is due.
    due: HashMap<Key, Instant>,
    /// The same by time, without the supervisors that are being reconciled.
    order: BTreeSet<(Instant, Key)>,
    running: HashSet<Key>,
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
        self.schedule(key, Duration::ZERO);
    }

    /// Queues a supervisor after this time, unless it is due earlier.
    pub fn schedule(&self, key: Key, wait: Duration) {
        let (mut inner, at) = (self.inner(), Instant::now() + wait);
        if !inner.open || inner.due.get(&key).is_some_and(|due| *due <= at) {
            return;
        }
        if let Some(before) = inner.due.insert(key.clone(), at) {
            inner.order.remove(&(before, key.clone()));
        }
        if !inner.running.contains(&key) {
            inner.order.insert((at, key));
            self.sooner.notify_one();
        }
    }

    /// Drops a deleted supervisor.
    pub fn forget(&self, key: &Key) {
        let mut inner = self.inner();
        if let Some(at) = inner.due.remove(key) {
            inner.order.remove(&(at, key.clone()));
        }
    }

    /// The number of supervisors that wait for a reconcile.
    pub fn len(&self) -> usize {
        let (inner, now) = (self.inner(), Instant::now());
        let again = inner.running.iter().filter_map(|key| inner.due.get(key)).filter(|at| **at <= now);
        inner.order.iter().take_while(|(at, _)| *at <= now).count() + again.count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until a supervisor is due. For one reader.
    pub async fn wait(&self) {
        loop {
            let first = self.inner().order.first().map(|(at, _)| *at);
            match first {
                Some(at) if at <= Instant::now() => return,
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = self.sooner.notified() => {}
                },
                None => self.sooner.notified().await,
            }
        }
    }

    /// Takes the supervisor that is due first. It is not taken again until the reconcile ends.
    pub fn take(self: &Arc<Self>) -> Option<Running> {
        let mut inner = self.inner();
        if inner.order.first().is_none_or(|(at, _)| *at > Instant::now()) {
            return None;
        }
        let (_, key) = inner.order.pop_first()?;
        inner.due.remove(&key);
        inner.running.insert(key.clone());
        drop(inner);
        Some(Running { queue: Arc::clone(self), key })
    }

    fn finish(&self, key: &Key) {
        let mut inner = self.inner();
        if inner.running.remove(key)
            && let Some(at) = inner.due.get(key).copied()
        {
            inner.order.insert((at, key.clone()));
            self.sooner.notify_one();
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A supervisor that is being reconciled, until this is dropped.
#[derive(Debug)]
pub struct Running {
    queue: Arc<WorkQueue>,
    key: Key,
}

impl Running {
    pub const fn key(&self) -> &Key {
        &self.key
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.queue.finish(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn key(name: &str) -> Key {
        Key::new("team", name)
    }

    fn opened() -> Arc<WorkQueue> {
        let queue = Arc::new(WorkQueue::default());
        queue.open();
        queue
    }

    fn take(queue: &Arc<WorkQueue>) -> Option<(Key, Running)> {
        queue.take().map(|running| (running.key().clone(), running))
    }

    #[tokio::test(start_paused = true)]
    async fn supervisors_are_taken_when_they_are_due() {
        let queue = opened();
        queue.schedule(key("a"), Duration::from_secs(5));
        queue.add(key("c"));
        tokio::time::advance(Duration::from_secs(1)).await;
        queue.add(key("b"));
        queue.add(key("c"));
        assert_eq!(queue.len(), 2, "a is not due yet");
        for expected in ["c", "b"] {
            assert_eq!(take(&queue).unwrap().0, key(expected));
        }
        assert!(queue.take().is_none() && queue.is_empty());
        let begin = Instant::now();
        queue.wait().await;
        assert_eq!(begin.elapsed(), Duration::from_secs(4));
        assert_eq!((queue.len(), take(&queue).unwrap().0), (1, key("a")));
        queue.add(key("a"));
        queue.forget(&key("a"));
        assert!(queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_time_counts() {
        let queue = opened();
        for seconds in [5, 2, 9] {
            queue.schedule(key("a"), Duration::from_secs(seconds));
        }
        let begin = Instant::now();
        queue.wait().await;
        assert_eq!(begin.elapsed(), Duration::from_secs(2));
        assert!(queue.take().is_some());
        assert!(queue.wait().now_or_never().is_none(), "it was taken once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_supervisor_is_not_reconciled_twice_at_once() {
        let queue = opened();
        queue.add(key("a"));
        let running = queue.take().unwrap();
        queue.add(key("a"));
        assert!(queue.take().is_none() && queue.wait().now_or_never().is_none());
        assert_eq!(queue.len(), 1, "it waits for the one that runs");
        drop(running);
        queue.wait().await;
        assert!(queue.take().is_some());
        queue.close();
        assert!(queue.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_supervisor_wakes_the_reader() {
        let queue = opened();
        queue.schedule(key("a"), Duration::from_mins(1));
        let begin = Instant::now();
        let add = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            queue.add(key("b"));
        };
        tokio::join!(queue.wait(), add);
        assert_eq!(begin.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_standby_keeps_no_queue() {
        let queue = Arc::new(WorkQueue::default());
        queue.add(key("a"));
        assert!(queue.is_empty(), "it does not lead yet");
        queue.open();
        queue.add(key("a"));
        queue.close();
        assert!(queue.is_empty(), "it leads no more");
    }
}
