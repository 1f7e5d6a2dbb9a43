//! What must follow a commit: canceling the tasks of remote agents. Each is stored with the commit, and tried again, also by the
//! next process, until it is done.

use std::sync::Arc;
use std::time::Duration;

use caipe_engine::{RemotePlace, Resume, ResumePoint};
use caipe_store::{OutboxEntry, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::driver::Withdrawal;
use crate::agent::CurrentSupervisor;

/// How long it is tried.
const DEADLINE: SignedDuration = SignedDuration::from_hours(1);

/// The first and the longest pause between two attempts.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// How long a process that stops tries to finish.
const GRACE: Duration = Duration::from_secs(2);

/// Carries out what follows commits.
pub(super) struct Outbox {
    store: Arc<dyn Store>,
    supervisor: CurrentSupervisor,
    tracker: TaskTracker,
    halt: CancellationToken,
}

/// The entry of a withdrawal.
pub(super) fn entry(task: &str, withdrawal: &Withdrawal, now: Timestamp) -> Result<OutboxEntry, StoreError> {
    let body = serde_json::to_string(withdrawal).map_err(|error| StoreError::Encode(error.to_string()))?;
    let deadline = now.saturating_add(DEADLINE).unwrap_or(Timestamp::MAX);
    Ok(OutboxEntry { task: task.to_owned(), id: withdrawal.task.clone(), body, deadline })
}

impl Outbox {
    pub(super) fn new(store: Arc<dyn Store>, supervisor: CurrentSupervisor) -> Arc<Self> {
        let (tracker, halt) = (TaskTracker::new(), CancellationToken::new());
        Arc::new(Self { store, supervisor, tracker, halt })
    }

    /// Carries out what a previous process has not finished.
    pub(super) async fn recover(self: &Arc<Self>) -> Result<(), StoreError> {
        self.perform(self.store.outbox().await?);
        Ok(())
    }

    /// Carries out the entries in the background.
    pub(super) fn perform(self: &Arc<Self>, entries: Vec<OutboxEntry>) {
        for entry in entries {
            let outbox = self.clone();
            self.tracker.spawn(async move {
                tokio::select! {
                    () = outbox.finish(&entry) => {}
                    () = outbox.halt.cancelled() => {}
                }
            });
        }
    }

    async fn finish(&self, entry: &OutboxEntry) {
        let mut pause = PAUSE.0;
        loop {
            match self.attempt(entry).await {
                Ok(()) => break,
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
            tracing::warn!(task = entry.task, %error, "the next start cancels the task of a remote agent again");
        }
    }

    async fn attempt(&self, entry: &OutboxEntry) -> Result<(), String> {
        let Withdrawal { agent, task, context, .. } =
            serde_json::from_str(&entry.body).map_err(|error| error.to_string())?;
        let place = RemotePlace::default();
        let from = Some(ResumePoint::Remote { task: task.clone(), context, place });
        let lease = self.supervisor.get().lease(&agent, Some(&Resume { from, answered: None }));
        let lease = lease.ok_or_else(|| format!("agent {agent} is not available"))?;
        lease.backend.cancel_task(&task).await
    }

    /// Waits a little for what is under way, and leaves the rest to the next process.
    pub(super) async fn close(&self) {
        self.tracker.close();
        drop(timeout(GRACE, self.tracker.wait()).await);
        self.halt.cancel();
    }
}
