//! A reader's position in a task's log.

use std::collections::VecDeque;
use std::sync::Arc;

use super::log::TaskLog;
use super::logged::LoggedEvent;

/// Most events taken from the log at once.
const BATCH: usize = 64;

/// A reader's position in a task's log. Where events after it are in memory no more, the next one it reads is the
/// task as it is, under the number of the last event that this includes.
#[derive(Debug)]
pub struct Cursor {
    log: Arc<TaskLog>,
    after: u64,
    taken: VecDeque<Arc<LoggedEvent>>,
}

impl Cursor {
    pub(super) const fn new(log: Arc<TaskLog>, after: u64) -> Self {
        Self { log, after, taken: VecDeque::new() }
    }

    /// The next event, or `None` once the log is closed and read to its end. Waits; may be dropped and asked
    /// again at any time without losing anything.
    pub async fn next(&mut self) -> Option<Arc<LoggedEvent>> {
        while self.taken.is_empty() {
            let log = Arc::clone(&self.log);
            // Registered before looking, so that a change in between is not missed.
            let changed = log.changed();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !self.take() {
                return None;
            }
            if self.taken.is_empty() {
                changed.await;
            }
        }
        self.taken.pop_front()
    }

    /// The next event if it is there already.
    pub fn ready(&mut self) -> Option<Arc<LoggedEvent>> {
        if self.taken.is_empty() {
            self.take();
        }
        self.taken.pop_front()
    }

    /// Takes what is ready; `false` means that there is nothing and nothing will come.
    fn take(&mut self) -> bool {
        while self.taken.is_empty() {
            let (batch, drained) = self.log.read(self.after, BATCH);
            let Some(last) = batch.last() else { return !drained };
            self.after = last.seq();
            self.taken.extend(batch.into_iter().filter(|event| event.is_shown()));
        }
        true
    }
}
