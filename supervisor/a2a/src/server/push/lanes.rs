//! How many deliveries go on at once: in all, and to one receiver.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// After so many receivers, those that nobody asks for are forgotten.
const MOST_IDLE: usize = 256;

/// Bounds on deliveries.
#[derive(Debug)]
pub(super) struct Lanes {
    all: Arc<Semaphore>,
    per_host: usize,
    hosts: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The right to deliver, until it is dropped.
#[derive(Debug)]
pub(super) struct Lane {
    _all: Option<OwnedSemaphorePermit>,
    _host: Option<OwnedSemaphorePermit>,
    // Dropped last: as long as it is there, the receiver's bound is known.
    _bound: Arc<Semaphore>,
}

impl Lanes {
    pub(super) fn new(all: usize, per_host: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all.max(1))), per_host: per_host.max(1), hosts: Mutex::default() }
    }

    /// Waits for a lane to a receiver. Its own bound comes first, so that waiting for a slow receiver takes no
    /// place from others.
    pub(super) async fn enter(&self, host: &str) -> Lane {
        let bound = self.bound(host);
        // Semaphores that are never closed always grant.
        let of_host = Arc::clone(&bound).acquire_owned().await.ok();
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok();
        Lane { _all: of_all, _host: of_host, _bound: bound }
    }

    fn bound(&self, host: &str) -> Arc<Semaphore> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hosts.get(host).and_then(Weak::upgrade) {
            return known;
        }
        if hosts.len() >= MOST_IDLE {
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
    async fn a_slow_receiver_takes_no_place_from_others() {
        let lanes = Lanes::new(3, 2);
        let (first, _second) = (lanes.enter("slow").await, lanes.enter("slow").await);
        assert!(lanes.enter("slow").now_or_never().is_none());
        let other = lanes.enter("other").now_or_never();
        assert!(other.is_some());
        assert!(lanes.enter("third").now_or_never().is_none(), "all three are taken");
        drop(first);
        assert!(lanes.enter("slow").now_or_never().is_some());
    }

    #[tokio::test]
    async fn receivers_are_forgotten() {
        let lanes = Lanes::new(1, 1);
        for host in 0..10 * MOST_IDLE {
            drop(lanes.enter(&host.to_string()).await);
        }
        assert!(lanes.hosts.lock().unwrap().len() <= MOST_IDLE);
    }
}
