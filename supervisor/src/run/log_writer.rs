//! Writes the log of one task to the store: under its lease, in order, and again while the store is not available.

use std::sync::Arc;
use std::time::Duration;

use caipe_engine::RunEvent;
use caipe_store::{Commit, ConversationChange, EventChunk, Fence, Store, StoreError, TaskRecord};
use jiff::Timestamp;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use crate::metrics::metrics;

/// How long a piece of text may be shown before it is stored. A crash loses the pieces of this time, and the turn is repeated.
const SAVE_INTERVAL: Duration = Duration::from_millis(250);

/// The pieces of all runs are saved at multiples of so many milliseconds, so that one transaction of the store contains those of
/// many.
const SAVE_GRID_MILLIS: i32 = 10;

/// How many numbers a commit reserves for events that are shown before they are stored. Once they are used up, the next event
/// waits for a commit.
const RESERVED: u64 = 1024;

/// The first and the longest pause before a commit is repeated.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The writer of one task's log.
pub(super) struct LogWriter {
    store: Arc<dyn Store>,
    context: String,
    /// The lease and the place of the last commit. Its token counts once `acquired` is set.
    fence: Fence,
    acquired: bool,
    next_seq: u64,
    /// Events that are shown and not passed to the store yet.
    unsaved: Vec<RunEvent>,
    /// When the first of them happened.
    unsaved_since: Option<(Instant, Timestamp)>,
    /// The background write, while there is one.
    saving: Option<AbortOnDropHandle<Result<(), StoreError>>>,
}

/// What a commit writes beside the unsaved events.
#[derive(Debug, Default)]
pub(super) struct Writing<'a> {
    pub(super) task: Option<TaskRecord>,
    pub(super) conversation: Option<ConversationChange>,
    pub(super) events: &'a [RunEvent],
    /// When the events happened.
    pub(super) at: Timestamp,
}

impl LogWriter {
    /// The writer of a task whose log is empty, and which this process owns.
    pub(super) fn of_new(store: Arc<dyn Store>, record: &TaskRecord) -> Self {
        Self { acquired: true, ..Self::after(store, record, 0) }
    }

    /// The writer of a task whose last stored event has the number `last`. Takes the lease with the first commit.
    pub(super) fn after(store: Arc<dyn Store>, record: &TaskRecord, last: u64) -> Self {
        let (unsaved, unsaved_since, saving) = (Vec::new(), None, None);
        let fence = Fence { task: record.id.clone(), ..Fence::default() };
        let (context, next_seq) = (record.context.clone(), last + 1);
        Self { store, context, fence, acquired: false, next_seq, unsaved, unsaved_since, saving }
    }

    /// The number of the last event that was shown or stored.
    pub(super) const fn last_seq(&self) -> u64 {
        self.next_seq - 1
    }

    /// Takes the lease if this process does not have it yet, and tries again while the store is not available. Returns the
    /// number of the next event.
    pub(super) async fn acquire(&mut self) -> Result<u64, StoreError> {
        let mut pauses = Pauses::default();
        loop {
            match self.try_acquire().await {
                Err(error) if error.is_transient() => pauses.wait(&self.fence.task, &error).await,
                acquired => return acquired,
            }
        }
    }

    async fn try_acquire(&mut self) -> Result<u64, StoreError> {
        if !self.acquired {
            let lease = self.store.acquire(&self.fence.task).await?;
            (self.fence.token, self.fence.number, self.fence.reserved) = (lease.token, 0, lease.reserved);
            self.next_seq = self.next_seq.max(lease.reserved + 1);
            self.acquired = true;
        }
        Ok(self.next_seq)
    }

    /// Writes the unsaved events and these changes as one commit. Returns once they are durable.
    pub(super) async fn commit(&mut self, writing: Writing<'_>) -> Result<(), StoreError> {
        if let Some(saving) = self.saving.take() {
            joined(saving).await?;
        }
        let first = self.acquire().await?;
        let commit = self.prepared(first, writing)?;
        persist(&*self.store, commit).await
    }

    /// As [`LogWriter::commit`] for a writer without unsaved events, and once only: a client waits for the result.
    pub(super) async fn try_commit(&mut self, writing: Writing<'_>) -> Result<(), StoreError> {
        let first = self.try_acquire().await?;
        let commit = self.prepared(first, writing)?;
        metrics().committed(self.store.commit(commit)).await
    }

    /// Takes a number for each of the events, which may be shown at once. `None` if they must be committed first.
    pub(super) fn show(&mut self, events: &[RunEvent], at: Timestamp) -> Option<u64> {
        let first = self.next_seq;
        let last = first + events.len() as u64 - 1;
        if !self.acquired || last > self.fence.reserved {
            return None;
        }
        self.unsaved_since.get_or_insert_with(|| (Instant::now(), at));
        self.unsaved.extend_from_slice(events);
        self.next_seq = last + 1;
        Some(first)
    }

    /// When the unsaved events must be written; `None` while there are none, or others are being written.
    pub(super) fn save_due(&self) -> Option<Instant> {
        let is_saving = self.saving.as_ref().is_some_and(|saving| !saving.is_finished());
        let past = |at: Timestamp| (at.subsec_millisecond() % SAVE_GRID_MILLIS).unsigned_abs();
        let due = |(since, at): (Instant, Timestamp)| {
            since + SAVE_INTERVAL - Duration::from_millis(past(at).into())
        };
        self.unsaved_since.filter(|_| !is_saving).map(due)
    }

    /// Writes the unsaved events in the background. An error is returned by the next commit.
    pub(super) fn save(&mut self) {
        if self.saving.as_ref().is_some_and(|saving| !saving.is_finished()) {
            return;
        }
        let (store, at) = (self.store.clone(), Timestamp::default());
        let commit = self.prepared(self.next_seq, Writing { at, ..Writing::default() });
        let before = self.saving.take();
        let work = async move {
            // It has ended; its error must not be lost.
            if let Some(before) = before {
                joined(before).await?;
            }
            persist(&*store, commit?).await
        };
        self.saving = Some(AbortOnDropHandle::new(tokio::spawn(work)));
    }

    /// The next commit. Its first new event has the number `first`.
    fn prepared(&mut self, first: u64, writing: Writing<'_>) -> Result<Commit, StoreError> {
        let Writing { task, conversation, events, at } = writing;
        let unsaved = std::mem::take(&mut self.unsaved);
        let since = self.unsaved_since.take().map_or(at, |(_, since)| since);
        let shown = EventChunk::of(first - unsaved.len() as u64, since, &unsaved)?;
        let new = EventChunk::of(first, at, events)?;
        self.next_seq = first + events.len() as u64;
        self.fence.number += 1;
        if self.next_seq + RESERVED / 2 > self.fence.reserved {
            self.fence.reserved = self.next_seq + RESERVED;
        }
        let (context, fence) = (self.context.clone(), Some(self.fence.clone()));
        let events = shown.into_iter().chain(new).collect();
        Ok(Commit { context, task, conversation, events, fence })
    }
}

/// The result of a background write.
async fn joined(saving: AbortOnDropHandle<Result<(), StoreError>>) -> Result<(), StoreError> {
    saving.await.unwrap_or_else(|error| {
        Err(StoreError::Encode(format!("the background write of a log did not end: {error}")))
    })
}

/// Writes a commit, and again while the store is not available: the run waits meanwhile.
async fn persist(store: &dyn Store, commit: Commit) -> Result<(), StoreError> {
    let mut pauses = Pauses::default();
    loop {
        match metrics().committed(store.commit(commit.clone())).await {
            Err(error) if error.is_transient() => {
                let task = commit.fence.as_ref().map_or("", |fence| fence.task.as_str());
                pauses.wait(task, &error).await;
            }
            written => return written,
        }
    }
}

/// The pauses between the attempts of one write.
#[derive(Debug)]
struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(PAUSE.0)
    }
}

impl Pauses {
    async fn wait(&mut self, task: &str, error: &StoreError) {
        tracing::error!(task, %error, retry_in = ?self.0, "a run waits because it cannot be saved");
        sleep(self.0).await;
        self.0 = PAUSE.1.min(self.0 * 2);
    }
}
