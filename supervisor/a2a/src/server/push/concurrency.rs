//! Limits of concurrent deliveries: in total and to one receiver.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of receivers after which the idle ones are forgotten.
const MAX_RECEIVERS: usize = 256;

#[derive(Debug)]
pub(super) struct Permits {
    all: Arc<Semaphore>,
    per_host: usize,
    hosts: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The right to deliver one notification, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    _all: Option<OwnedSemaphorePermit>,
    _host: Option<OwnedSemaphorePermit>,
    // Dropped last: it keeps the receiver's limit in the map.
    _bound: Arc<Semaphore>,
}

impl Permits {
    pub(super) fn new(all: usize, per_host: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all.max(1))), per_host: per_host.max(1), hosts: Mutex::default() }
    }

    /// Waits for a permit. The receiver's own limit comes first, so that a wait for a slow receiver does not block the
    /// others.
    pub(super) async fn acquire(&self, host: &str) -> Permit {
        let bound = self.bound(host);
        // Only a closed semaphore refuses.
        let of_host = Arc::clone(&bound).acquire_owned().await.ok();
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok();
        Permit { _all: of_all, _host: of_host, _bound: bound }
    }

    fn bound(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hosts.get(host).and_then(Weak::upgrade) {
            return known;
        }
        if hosts.len() >= MAX_RECEIVERS {
            hosts.retain(|_, bound| bound.strong_count() > 0);
        }
        let bound = Arc::new(Semaphore::new(self.per_host));
        hosts.insert(host.to_owned(), Arc::downgrade(&bound));
        bound
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_slow_receiver_does_not_block_others() {
        let permits = Permits::new(3, 2);
        let (first, _second) = (permits.acquire("slow").await, permits.acquire("slow").await);
        assert!(permits.acquire("slow").now_or_never().is_none());
        let other = permits.acquire("other").now_or_never();
        assert!(other.is_some());
        assert!(permits.acquire("third").now_or_never().is_none(), "all three are taken");
        drop(first);
        assert!(permits.acquire("slow").now_or_never().is_some());
    }

    #[tokio::test]
    async fn idle_receivers_are_forgotten() {
        let permits = Permits::new(1, 1);
        for host in 0..10 * MAX_RECEIVERS {
            drop(permits.acquire(&host.to_string()).await);
        }
        assert!(permits.hosts.lock().unwrap().len() <= MAX_RECEIVERS);
    }
}
