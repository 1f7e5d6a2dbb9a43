//! What must follow a commit: canceling the tasks of remote agents. Each is stored with the commit, and tried again, also by
//! another process, until it is done.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caipe_engine::{RemotePlace, Resume, ResumePoint};
use caipe_store::{LeaseTerm, OutboxEntry, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::driver::Withdrawal;
use super::leases::RELEASE_DEADLINE;
use crate::agent::CurrentSupervisor;

/// How long it is tried.
const DEADLINE: SignedDuration = SignedDuration::from_hours(1);

/// The first and the longest pause between two attempts.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// How long a process that stops tries to finish.
const GRACE: Duration = Duration::from_secs(2);

/// What an attempt has come to.
enum Attempt {
    Done,
    /// Another process carries the entry out.
    LeftToAnother,
}

/// Carries out what follows commits.
pub(super) struct Outbox {
    store: Arc<dyn Store>,
    supervisor: CurrentSupervisor,
    /// The owner of the claims of this process, and their term.
    term: LeaseTerm,
    /// The claims of the entries that this process carries out.
    active: Mutex<HashSet<String>>,
    tracker: TaskTracker,
    halt: CancellationToken,
}

/// The claim of the process that carries an entry out. The length makes it unique.
fn claim(entry: &OutboxEntry) -> String {
    let OutboxEntry { task, id, .. } = entry;
    format!("outbox:{}:{task}:{id}", task.len())
}

/// The entry of a withdrawal.
pub(super) fn entry(task: &str, withdrawal: &Withdrawal, now: Timestamp) -> Result<OutboxEntry, StoreError> {
    let body = serde_json::to_string(withdrawal).map_err(|error| StoreError::Encode(error.to_string()))?;
    let deadline = now.saturating_add(DEADLINE).unwrap_or(Timestamp::MAX);
    Ok(OutboxEntry { task: task.to_owned(), id: withdrawal.task.clone(), body, deadline })
}

impl Outbox {
    pub(super) fn new(store: Arc<dyn Store>, supervisor: CurrentSupervisor, term: LeaseTerm) -> Arc<Self> {
        let (tracker, halt) = (TaskTracker::new(), CancellationToken::new());
        Arc::new(Self { store, supervisor, term, active: Mutex::default(), tracker, halt })
    }

    /// Carries out what another process has not finished and does not carry out any more.
    pub(super) async fn take_over(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut claimed = HashSet::new();
        for entry in self.store.outbox().await? {
            if self.store.claim(&claim(&entry), &self.term).await? {
                claimed.insert(claim(&entry));
            }
        }
        if !claimed.is_empty() {
            // Without those that were done before the claim.
            let entries = self.store.outbox().await?;
            self.perform(entries.into_iter().filter(|entry| claimed.contains(&claim(entry))).collect());
        }
        Ok(())
    }

    /// Carries out the entries in the background.
    pub(super) fn perform(self: &Arc<Self>, entries: Vec<OutboxEntry>) {
        for entry in entries {
            let claim = claim(&entry);
            if !self.active().insert(claim.clone()) {
                continue;
            }
            let outbox = self.clone();
            self.tracker.spawn(async move {
                tokio::select! {
                    () = outbox.finish(&entry) => {}
                    () = outbox.halt.cancelled() => {}
                }
                outbox.active().remove(&claim);
                if let Err(error) = outbox.store.end_claim(&claim, &outbox.term.owner).await {
                    tracing::debug!(task = entry.task, %error, "failed to end a claim; it ends with its term");
                }
            });
        }
    }

    fn active(&self) -> MutexGuard<'_, HashSet<String>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn finish(&self, entry: &OutboxEntry) {
        let mut pause = PAUSE.0;
        loop {
            match self.attempt(entry).await {
                Ok(Attempt::Done) => break,
                Ok(Attempt::LeftToAnother) => return,
                Err(reason) if Timestamp::now() >= entry.deadline => {
                    tracing::warn!(task = entry.task, reason, "gave up to cancel the task of a remote agent");
                    break;
                }
                Err(reason) => {
                    tracing::warn!(task = entry.task, reason, retry_in = ?pause, "failed to cancel the task of a remote agent");
                }
            }
            sleep(pause).await;
            pause = PAUSE.1.min(pause * 2);
        }
        if let Err(error) = self.store.settle(&entry.task, &entry.id).await {
            tracing::warn!(task = entry.task, %error, "the task of a remote agent is canceled again later");
        }
    }

    async fn attempt(&self, entry: &OutboxEntry) -> Result<Attempt, String> {
        if !self.store.claim(&claim(entry), &self.term).await.map_err(|error| error.to_string())? {
            return Ok(Attempt::LeftToAnother);
        }
        let Withdrawal { agent, task, context, .. } =
            serde_json::from_str(&entry.body).map_err(|error| error.to_string())?;
        let place = RemotePlace::default();
        let from = Some(ResumePoint::Remote { task: task.clone(), context, place });
        let lease = self.supervisor.get().lease(&agent, Some(&Resume { from, answered: None }));
        let lease = lease.ok_or_else(|| format!("agent {agent} is not available"))?;
        lease.backend.cancel_task(&task).await.map(|()| Attempt::Done)
    }

    /// Waits a little for what is under way, and leaves the rest to the next process.
    pub(super) async fn close(&self) {
        self.tracker.close();
        drop(timeout(GRACE, self.tracker.wait()).await);
        self.halt.cancel();
        drop(timeout(RELEASE_DEADLINE, self.tracker.wait()).await);
    }
}
