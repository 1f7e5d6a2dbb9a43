//! The order of commits: those of one task are sent one after the other, also when one of them is sent again.

use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures::poll;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Tasks whose names have the same hash also wait for each other.
const QUEUES: usize = 1024;

pub(crate) struct CommitOrder {
    hasher: RandomState,
    queues: Vec<Arc<Mutex<()>>>,
}

/// A place in a queue, taken when this was made.
pub(crate) struct Turn(Poll<OwnedMutexGuard<()>>, Pin<Box<dyn Future<Output = OwnedMutexGuard<()>> + Send>>);

impl Default for CommitOrder {
    fn default() -> Self {
        Self { hasher: RandomState::new(), queues: (0..QUEUES).map(|_| Arc::default()).collect() }
    }
}

impl CommitOrder {
    /// Takes the last place in the queue of a task.
    pub(crate) async fn queue(&self, task: &str) -> Turn {
        let index = usize::try_from(self.hasher.hash_one(task)).unwrap_or_default() % QUEUES;
        let queue = self.queues.get(index).cloned().unwrap_or_default();
        let mut place = Box::pin(queue.lock_owned());
        Turn(poll!(&mut place), place)
    }
}

impl Turn {
    /// Waits until all before it are done.
    pub(crate) async fn reached(self) -> OwnedMutexGuard<()> {
        match self.0 {
            Poll::Ready(guard) => guard,
            Poll::Pending => self.1.await,
        }
    }
}
