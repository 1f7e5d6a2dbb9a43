//! The leases of this process: renewed in the background while a run is under way, and released at its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use caipe_crds::names::POD_UID;
use caipe_store::{Changes, Control, Lease, LeaseTerm, Store, StoreError, Topic};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::control::ControlRequest;
use super::pauses::Pauses;

/// How long other processes wait before they continue the tasks of one that is not reachable any more.
const TTL: Duration = Duration::from_secs(8);

/// The same for what follows the runs: push notifications, and canceling the tasks of remote agents.
const CLAIM: Duration = Duration::from_secs(6);

/// Renewals within a term, each of which may take as long as the time to the next.
const RENEWALS: u32 = 4;

/// How long a release may take. After that, the lease ends with its term.
pub(super) const RELEASE_DEADLINE: Duration = Duration::from_secs(2);

/// Takes leases for this process.
#[derive(Debug)]
pub(super) struct Leases {
    pub(super) store: Arc<dyn Store>,
    pub(super) term: LeaseTerm,
    /// The renewals, each of which ends with a release.
    renewals: TaskTracker,
}

/// A lease of this process. It is released when it is dropped with the copies of its `end`.
#[derive(Debug)]
pub(super) struct HeldLease {
    pub(super) state: Arc<LeaseState>,
    pub(super) reserved: u64,
    /// Shared with what must be done before the release.
    pub(super) end: Arc<DropGuard>,
}

#[derive(Debug)]
pub(super) struct LeaseState {
    task: String,
    pub(super) token: u64,
    ttl: Duration,
    taken: Instant,
    /// The milliseconds from `taken` to the local deadline.
    deadline: AtomicU64,
    /// Whether a commit has released the lease.
    released: AtomicBool,
    /// Cancelled once another owner has the lease.
    pub(super) lost: CancellationToken,
    /// The number of the last control message that was passed to the run.
    controls: AtomicU64,
}

impl Leases {
    pub(super) fn new(store: Arc<dyn Store>, term: Option<LeaseTerm>) -> Arc<Self> {
        let term = term.unwrap_or_else(|| LeaseTerm { owner: own_name(), ttl: TTL });
        Arc::new(Self { store, term, renewals: TaskTracker::new() })
    }

    /// The term of the claims of this process.
    pub(super) fn claim_term(&self) -> LeaseTerm {
        LeaseTerm { owner: self.term.owner.clone(), ttl: CLAIM }
    }

    /// Takes the lease of a stored task. `stop` is cancelled if another process asks for it.
    pub(super) async fn acquire(&self, task: &str, stop: CancellationToken) -> Result<HeldLease, StoreError> {
        let before = Instant::now();
        let lease = self.store.acquire(task, &self.term).await?;
        Ok(self.hold(task, lease, before, stop))
    }

    /// The same, and tries again while the store is not available.
    pub(super) async fn acquire_with_retries(
        &self,
        task: &str,
        stop: CancellationToken,
    ) -> Result<HeldLease, StoreError> {
        let mut pauses = Pauses::default();
        loop {
            match self.acquire(task, stop.clone()).await {
                Err(error) if error.is_transient() => pauses.wait(task, &error).await,
                acquired => return acquired,
            }
        }
    }

    /// The lease of a task that this process has created since `before`.
    pub(super) fn of_new(&self, task: &str, before: Instant, stop: CancellationToken) -> HeldLease {
        self.hold(task, Lease::default(), before, stop)
    }

    fn hold(&self, task: &str, lease: Lease, taken: Instant, stop: CancellationToken) -> HeldLease {
        let Lease { token, reserved, has_controls } = lease;
        let ttl = self.term.ttl;
        let state = Arc::new(LeaseState {
            task: task.to_owned(),
            token,
            ttl,
            taken,
            deadline: AtomicU64::new(millis(ttl)),
            released: AtomicBool::new(false),
            lost: CancellationToken::new(),
            controls: AtomicU64::new(0),
        });
        let end = CancellationToken::new();
        let renewer = Renewer { store: self.store.clone(), state: state.clone(), stop };
        self.renewals.spawn(renewer.run(end.clone(), has_controls));
        HeldLease { state, reserved, end: Arc::new(end.drop_guard()) }
    }

    /// Waits until the leases of ended runs are released.
    pub(super) async fn released(&self) {
        self.renewals.close();
        drop(timeout(RELEASE_DEADLINE, self.renewals.wait()).await);
    }
}

impl LeaseState {
    /// Whether this process may show events: the local deadline is not reached. It begins before the request to the store, so
    /// it is never after the one of the store.
    pub(super) fn is_current(&self) -> bool {
        millis(self.taken.elapsed()) < self.deadline.load(Ordering::Relaxed)
    }

    /// Renews the lease.
    pub(super) async fn renew(&self, store: &dyn Store) -> Result<(), StoreError> {
        let before = millis(self.taken.elapsed());
        let renewed = store.renew(&self.task, self.token, self.ttl).await;
        match &renewed {
            Ok(()) => drop(self.deadline.fetch_max(before + millis(self.ttl), Ordering::Relaxed)),
            Err(StoreError::LeaseLost { .. }) => self.lose(),
            Err(_) => {}
        }
        renewed
    }

    /// Notes that another owner has the lease.
    pub(super) fn lose(&self) {
        self.deadline.store(0, Ordering::Relaxed);
        if !self.released.load(Ordering::Relaxed) {
            self.lost.cancel();
        }
    }

    /// Notes that a commit has released the lease.
    pub(super) fn set_released(&self) {
        self.released.store(true, Ordering::Relaxed);
    }

    /// The number of the last control message that the run has acted on once it is over.
    pub(super) fn controls(&self) -> u64 {
        self.controls.load(Ordering::Relaxed)
    }
}

/// Renews a lease and receives the control messages to its owner.
struct Renewer {
    store: Arc<dyn Store>,
    state: Arc<LeaseState>,
    stop: CancellationToken,
}

impl Renewer {
    async fn run(self, end: CancellationToken, has_controls: bool) {
        tokio::select! {
            () = end.cancelled() => {}
            () = self.keep(has_controls) => return,
        }
        let Self { store, state, .. } = &self;
        if !state.released.load(Ordering::Relaxed)
            && let Ok(Err(error)) = timeout(RELEASE_DEADLINE, store.release(&state.task, state.token)).await
        {
            tracing::warn!(task = state.task, %error, "failed to release a lease; it ends with its term");
        }
    }

    /// Until the lease is lost.
    async fn keep(&self, has_controls: bool) {
        let interval = self.state.ttl / RENEWALS;
        let (mut due, mut changes, mut unread) = (Instant::now() + interval, None, has_controls);
        loop {
            if changes.is_none() {
                changes = self.store.watch(&self.state.task, Topic::Controls).await.ok();
            }
            if unread {
                unread = self.read_controls().await.is_err();
            }
            tokio::select! {
                () = changed(changes.as_mut()) => unread = true,
                () = sleep_until(due) => {
                    due = Instant::now() + interval;
                    match timeout(interval, self.state.renew(&*self.store)).await {
                        Ok(Err(StoreError::LeaseLost { .. })) => return,
                        Ok(Err(error)) => {
                            tracing::warn!(task = self.state.task, %error, "failed to renew a lease");
                        }
                        Err(_) => tracing::warn!(task = self.state.task, "the renewal of a lease took too long"),
                        Ok(Ok(())) => {}
                    }
                }
            }
        }
    }

    async fn read_controls(&self) -> Result<(), StoreError> {
        for Control { number, message } in
            self.store.controls(&self.state.task, self.state.controls()).await?
        {
            match ControlRequest::read(&message) {
                Some(ControlRequest::Cancel) => self.stop.cancel(),
                None => tracing::warn!(task = self.state.task, id = message.id, "an unknown control message"),
            }
            self.state.controls.store(number, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The owner of the leases of this process.
fn own_name() -> String {
    let host = rustix::system::uname();
    let pod = std::env::var(POD_UID).ok().filter(|uid| !uid.is_empty());
    owner(pod, &host.nodename().to_string_lossy(), std::process::id())
}

/// The uid of the pod, which no other pod has. The first process of its container starts once the one before it has ended, so
/// that it takes back the leases of that one at once. Every other process has a name of its own.
fn owner(pod: Option<String>, host: &str, process: u32) -> String {
    const FIRST: u32 = 1;
    pod.filter(|_| process == FIRST).unwrap_or_else(|| format!("{host}-{}", Uuid::new_v4().simple()))
}

async fn changed(changes: Option<&mut Changes>) {
    match changes {
        Some(changes) => changes.changed().await,
        None => std::future::pending().await,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_next_process_of_a_container_has_the_name_of_the_one_before() {
        let pod = |uid: &str| Some(uid.to_owned());
        assert_eq!(owner(pod("uid"), "host", 1), owner(pod("uid"), "host", 1));
        assert_ne!(
            owner(pod("uid"), "host", 1),
            owner(pod("other"), "host", 1),
            "pods may share a host name"
        );
        for (pod, process) in [(pod("uid"), 7), (None, 1), (None, 7)] {
            assert_ne!(owner(pod.clone(), "host", process), owner(pod.clone(), "host", process));
            assert!(owner(pod, "host", process).starts_with("host-"));
        }
    }
}
