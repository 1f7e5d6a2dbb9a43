//! Follows the log of a task in the store, whichever process writes it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::backend::Store;
use crate::error::StoreError;
use crate::event_chunk::{self, EventChunk, LoggedEvent};
use crate::live::LiveEvents;
use crate::notifier::{Changes, Topic};

/// Most events in memory. A slow reader holds no more.
const PAGE: usize = 256;

/// Most live events that wait for earlier ones.
const MOST_EARLY: usize = 1024;

/// A position in the log of a task. Returns the events as they are committed, until no run of the task is under way.
#[derive(Debug)]
pub struct Follower {
    store: Arc<dyn Store>,
    task: String,
    after: u64,
    page: VecDeque<LoggedEvent>,
    changes: Option<Changes>,
    live: Option<LiveEvents>,
    /// Live events after a gap, which the store fills.
    early: BTreeMap<u64, LoggedEvent>,
}

impl Follower {
    /// The events with a number above `after`.
    pub fn new(store: Arc<dyn Store>, task: impl Into<String>, after: u64) -> Self {
        Self {
            store,
            task: task.into(),
            after,
            page: VecDeque::new(),
            changes: None,
            live: None,
            early: BTreeMap::new(),
        }
    }

    /// Waits for the next event, also one that its owner has shown and not stored. `None` once the task has ended or waits for a
    /// person and all its events were returned, and also if there is no such task. After an error, the next call tries again.
    /// Cancel safe.
    pub async fn next(&mut self) -> Result<Option<LoggedEvent>, StoreError> {
        loop {
            if let Some(event) = self.page.pop_front() {
                self.after = event.seq;
                return Ok(Some(event));
            }
            if let Some(event) = self.next_early() {
                self.after = event.seq;
                return Ok(Some(event));
            }
            if self.read().await? {
                continue;
            }
            // Watched before the last read, so that no change in between is missed.
            if self.changes.is_none() {
                self.changes = Some(self.store.watch(&self.task, Topic::Events).await?);
                self.live = self.store.live(&self.task);
                continue;
            }
            let is_under_way =
                self.store.task(&self.task).await?.is_some_and(|record| record.phase.is_under_way());
            // The last events may have come with the phase.
            if is_under_way {
                self.wait().await?;
            } else if !self.read().await? {
                return Ok(None);
            }
        }
    }

    /// Waits for a change in the store, or for the event after the last one.
    async fn wait(&mut self) -> Result<(), StoreError> {
        let (Some(changes), live) = (&mut self.changes, &mut self.live) else { return Ok(()) };
        loop {
            let chunk = tokio::select! {
                () = changes.changed() => return Ok(()),
                chunk = next_live(live.as_mut()) => chunk,
            };
            let mut events = Vec::new();
            event_chunk::read(&self.task, (chunk.first, &chunk.json), &mut events, (self.after, PAGE))?;
            if self.early.len() > MOST_EARLY {
                self.early.clear();
            }
            self.early.extend(events.into_iter().map(|event| (event.seq, event)));
            if self.early.contains_key(&(self.after + 1)) {
                return Ok(());
            }
        }
    }

    /// The live event after the last one, if it has come.
    fn next_early(&mut self) -> Option<LoggedEvent> {
        while self.early.first_key_value().is_some_and(|(seq, _)| *seq <= self.after) {
            self.early.pop_first();
        }
        self.early.remove(&(self.after + 1))
    }

    /// Reads the next page. Returns whether it has any event.
    async fn read(&mut self) -> Result<bool, StoreError> {
        self.page = self.store.events(&self.task, self.after, PAGE).await?.into();
        Ok(!self.page.is_empty())
    }
}

async fn next_live(live: Option<&mut LiveEvents>) -> Arc<EventChunk> {
    match live {
        Some(live) => live.next().await,
        None => std::future::pending().await,
    }
}
