//! Follows the log of a task in the store, whichever process writes it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::backend::Store;
use crate::error::StoreError;
use crate::event_chunk::LoggedEvent;
use crate::notifier::{Changes, Topic};

/// Most events in memory. A slow reader holds no more.
const PAGE: usize = 256;

/// A position in the log of a task. Returns the events as they are committed, until no run of the task is under way.
#[derive(Debug)]
pub struct Follower {
    store: Arc<dyn Store>,
    task: String,
    after: u64,
    page: VecDeque<LoggedEvent>,
    changes: Option<Changes>,
}

impl Follower {
    /// The events with a number above `after`.
    pub fn new(store: Arc<dyn Store>, task: impl Into<String>, after: u64) -> Self {
        Self { store, task: task.into(), after, page: VecDeque::new(), changes: None }
    }

    /// Waits for the next event. `None` once the task has ended or waits for a person, all its events were returned, and also
    /// if there is no such task. After an error, the next call tries again. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<LoggedEvent>, StoreError> {
        loop {
            if let Some(event) = self.page.pop_front() {
                self.after = event.seq;
                return Ok(Some(event));
            }
            if self.read().await? {
                continue;
            }
            // Watched before the last read, so that no change in between is missed.
            let Some(changes) = &mut self.changes else {
                self.changes = Some(self.store.watch(&self.task, Topic::Events).await?);
                continue;
            };
            let is_under_way =
                self.store.task(&self.task).await?.is_some_and(|record| record.phase.is_under_way());
            // The last events may have come with the phase.
            if is_under_way {
                changes.changed().await;
            } else if !self.read().await? {
                return Ok(None);
            }
        }
    }

    /// Reads the next page. Returns whether it has any event.
    async fn read(&mut self) -> Result<bool, StoreError> {
        self.page = self.store.events(&self.task, self.after, PAGE).await?.into();
        Ok(!self.page.is_empty())
    }
}
