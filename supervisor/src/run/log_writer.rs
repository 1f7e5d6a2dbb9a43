//! Writes the log of one task to the store: under its lease, in order, and again while the store is not available.

use std::sync::Arc;
use std::time::Duration;

use caipe_engine::RunEvent;
use caipe_store::{
    Commit, ConversationChange, EventChunk, Fence, Follower, OutboxEntry, Store, StoreError, TaskRecord,
};
use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

use super::leases::{HeldLease, LeaseState, Leases};
use super::pauses::Pauses;
use crate::metrics::metrics;

/// How long a piece of text may be shown before it is stored, if other processes read the store. A crash loses the pieces of
/// this time, and the turn is repeated.
const SHARED_SAVE_INTERVAL: Duration = Duration::from_millis(250);

/// The same where no other process reads the store: its pieces are read only after a crash, which repeats the turn.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// The pieces of all runs are saved at multiples of this part of the interval, so that one transaction of the store contains
/// those of many.
const GRID_PART: u32 = 10;

/// How many numbers a commit reserves for events that are shown before they are stored. Once they are used up, the next event
/// waits for a commit.
const RESERVED: u64 = 1024;

/// The writer of one task's log.
pub(super) struct LogWriter {
    leases: Arc<Leases>,
    context: String,
    /// The place of the last commit. Its token counts once there is a lease.
    fence: Fence,
    lease: Option<HeldLease>,
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
    /// What must follow the commit.
    pub(super) outbox: Vec<OutboxEntry>,
    /// Whether the run is over, so that another process may take the lease.
    pub(super) release: bool,
}

impl LogWriter {
    /// The writer of a task whose last stored event has the number `last`. Without a lease, it takes one with the first
    /// commit.
    pub(super) fn after(
        leases: Arc<Leases>,
        record: &TaskRecord,
        last: u64,
        lease: Option<HeldLease>,
    ) -> Self {
        let (unsaved, unsaved_since, saving) = (Vec::new(), None, None);
        let fence = Fence { task: record.id.clone(), ..Fence::default() };
        let (context, next_seq) = (record.context.clone(), last + 1);
        let mut writer =
            Self { leases, context, fence, lease: None, next_seq, unsaved, unsaved_since, saving };
        if let Some(lease) = lease {
            writer.hold(lease);
        }
        writer
    }

    fn hold(&mut self, lease: HeldLease) {
        (self.fence.token, self.fence.number, self.fence.reserved) = (lease.state.token, 0, lease.reserved);
        self.next_seq = self.next_seq.max(lease.reserved + 1);
        self.lease = Some(lease);
    }

    /// Cancelled once another process has the lease.
    pub(super) fn lost(&self) -> CancellationToken {
        self.lease.as_ref().map(|lease| lease.state.lost.clone()).unwrap_or_default()
    }

    /// Keeps the lease until it is dropped too.
    pub(super) fn keep_lease(&self) -> Option<Arc<DropGuard>> {
        self.lease.as_ref().map(|lease| lease.end.clone())
    }

    /// Reads the events after the last one that was shown or stored.
    pub(super) fn follower(&self) -> Follower {
        Follower::new(self.leases.store.clone(), &*self.fence.task, self.last_seq())
    }

    /// The number of the last event that was shown or stored.
    pub(super) const fn last_seq(&self) -> u64 {
        self.next_seq - 1
    }

    /// Takes the lease if this process does not have it yet, and tries again while the store is not available. Returns the
    /// number of the next event.
    pub(super) async fn acquire(&mut self) -> Result<u64, StoreError> {
        self.held().await?;
        Ok(self.next_seq)
    }

    async fn try_acquire(&mut self) -> Result<u64, StoreError> {
        if self.lease.is_none() {
            let lease = self.leases.acquire(&self.fence.task, CancellationToken::new()).await?;
            self.hold(lease);
        }
        Ok(self.next_seq)
    }

    async fn held(&mut self) -> Result<Arc<LeaseState>, StoreError> {
        if let Some(lease) = &self.lease {
            return Ok(lease.state.clone());
        }
        let lease = self.leases.acquire_with_retries(&self.fence.task, CancellationToken::new()).await?;
        let state = lease.state.clone();
        self.hold(lease);
        Ok(state)
    }

    /// Writes the unsaved events and these changes as one commit. Returns once they are durable.
    pub(super) async fn commit(&mut self, writing: Writing<'_>) -> Result<(), StoreError> {
        if let Some(saving) = self.saving.take() {
            joined(saving).await?;
        }
        let (lease, release) = (self.held().await?, writing.release);
        let commit = self.prepared(self.next_seq, writing)?;
        persist(&*self.leases.store, &lease, commit).await?;
        if release {
            lease.set_released();
            self.lease = None;
        }
        Ok(())
    }

    /// As [`LogWriter::commit`] for a writer without unsaved events, and once only: a client waits for the result.
    pub(super) async fn try_commit(&mut self, writing: Writing<'_>) -> Result<(), StoreError> {
        let first = self.try_acquire().await?;
        let commit = self.prepared(first, writing)?;
        metrics().committed(self.leases.store.commit(commit)).await
    }

    /// Takes a number for each of the events, which may be shown at once. `None` if they must be committed first.
    pub(super) fn show(&mut self, events: &[RunEvent], at: Timestamp) -> Option<u64> {
        let first = self.next_seq;
        let last = first + events.len() as u64 - 1;
        if last > self.fence.reserved || !self.lease.as_ref().is_some_and(|lease| lease.state.is_current()) {
            return None;
        }
        self.unsaved_since.get_or_insert_with(|| (Instant::now(), at));
        self.unsaved.extend_from_slice(events);
        self.next_seq = last + 1;
        if self.leases.store.has_live_readers(&self.fence.task)
            && let Ok(Some(events)) = EventChunk::of(first, at, events)
        {
            self.leases.store.publish(&self.fence.task, events);
        }
        Some(first)
    }

    /// When the unsaved events must be written; `None` while there are none, or others are being written.
    pub(super) fn save_due(&self) -> Option<Instant> {
        let is_saving = self.saving.as_ref().is_some_and(|saving| !saving.is_finished());
        let interval = if self.leases.store.is_shared() { SHARED_SAVE_INTERVAL } else { SAVE_INTERVAL };
        let grid = i64::try_from((interval / GRID_PART).as_micros()).unwrap_or(1);
        let past = |at: Timestamp| at.as_microsecond().rem_euclid(grid).unsigned_abs();
        let due = |(since, at): (Instant, Timestamp)| since + interval - Duration::from_micros(past(at));
        self.unsaved_since.filter(|_| !is_saving).map(due)
    }

    /// Writes the unsaved events in the background. An error is returned by the next commit.
    pub(super) fn save(&mut self) {
        if self.saving.as_ref().is_some_and(|saving| !saving.is_finished()) {
            return;
        }
        let Some(lease) = self.lease.as_ref().map(|lease| lease.state.clone()) else { return };
        let (store, at) = (self.leases.store.clone(), Timestamp::default());
        let commit = self.prepared(self.next_seq, Writing { at, ..Writing::default() });
        let before = self.saving.take();
        let work = async move {
            // It has ended; its error must not be lost.
            if let Some(before) = before {
                joined(before).await?;
            }
            persist(&*store, &lease, commit?).await
        };
        self.saving = Some(AbortOnDropHandle::new(tokio::spawn(work)));
    }

    /// The next commit. Its first new event has the number `first`.
    fn prepared(&mut self, first: u64, writing: Writing<'_>) -> Result<Commit, StoreError> {
        let Writing { task, conversation, events, at, outbox, release } = writing;
        let unsaved = std::mem::take(&mut self.unsaved);
        let since = self.unsaved_since.take().map_or(at, |(_, since)| since);
        let shown = EventChunk::of(first - unsaved.len() as u64, since, &unsaved)?;
        let new = EventChunk::of(first, at, events)?;
        self.next_seq = first + events.len() as u64;
        self.fence.number += 1;
        if self.next_seq + RESERVED / 2 > self.fence.reserved {
            self.fence.reserved = self.next_seq + RESERVED;
        }
        let mut fence = self.fence.clone();
        if release && let Some(lease) = &self.lease {
            // The commit that ends the run is the one that acts on them.
            (fence.release, fence.handled) = (true, lease.state.controls());
        }
        let (context, fence) = (self.context.clone(), Some(fence));
        let events = shown.into_iter().chain(new).collect();
        Ok(Commit { context, task, conversation, events, outbox, fence, create: None })
    }
}

/// The result of a background write.
async fn joined(saving: AbortOnDropHandle<Result<(), StoreError>>) -> Result<(), StoreError> {
    saving.await.unwrap_or_else(|error| {
        Err(StoreError::Encode(format!("the background write of a log did not end: {error}")))
    })
}

/// Writes a commit, and again while the store is not available: the run waits meanwhile. Past the local deadline of the lease
/// it renews the lease first, which fails if another process has it.
async fn persist(store: &dyn Store, lease: &LeaseState, commit: Commit) -> Result<(), StoreError> {
    let mut pauses = Pauses::default();
    loop {
        let renewed = if lease.is_current() { Ok(()) } else { lease.renew(store).await };
        let written = match renewed {
            Ok(()) => metrics().committed(store.commit(commit.clone())).await,
            Err(error) => Err(error),
        };
        match written {
            Err(error @ StoreError::LeaseLost { .. }) => {
                lease.lose();
                return Err(error);
            }
            Err(error) if error.is_transient() => {
                let task = commit.fence.as_ref().map_or("", |fence| fence.task.as_str());
                pauses.wait(task, &error).await;
            }
            written => return written,
        }
    }
}
