//! A task's log: append-only, numbered, read by cursors.
//!
//! There is no channel between a task and its readers. A reader is a position in the log: a slow reader loses nothing, and
//! a stalled one costs nothing. A long log keeps its newest events; a reader behind them gets a snapshot of the task and
//! continues from there.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::log_entry::LoggedEvent;
use super::retained_events::{LogBounds, LogBudget, Window};
use super::text_piece::TextTemplate;
use crate::model::{Event, Message, Task, TaskState};

/// Most events taken from the log at once.
const BATCH: usize = 64;

/// The events of one task that are in memory.
#[derive(Debug)]
pub struct TaskLog {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug)]
struct Inner {
    window: Window,
    closed: bool,
}

/// What an event adds to a log.
#[derive(Debug)]
pub enum Addition<'a> {
    Events(Vec<Event>),
    /// A piece of text, and what it has in common with the pieces before it.
    Text(Arc<TextTemplate>, &'a str),
}

impl Addition<'_> {
    /// Whether it adds nothing.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Events(events) if events.is_empty())
    }
}

/// An event that a log rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    #[error("failed to append to the task's log: it is closed")]
    Closed,
    /// The number is not above the last one.
    #[error("failed to append to the task's log: number {seq} does not follow {last}")]
    OutOfOrder {
        /// The number that was given.
        seq: u64,
        /// The last number of the log.
        last: u64,
    },
    /// The first event is not the task.
    #[error("failed to restore a task's log: its first event is not the task")]
    NoTask,
}

impl TaskLog {
    /// The log of a new task; event 1 is the task itself.
    pub fn new(task: Task) -> Self {
        Self::bounded(task, LogBounds::default())
    }

    /// A log with other bounds.
    pub fn bounded(task: Task, bounds: LogBounds) -> Self {
        Self::with(Window::new(1, Timestamp::now(), task, bounds))
    }

    /// The log of a new task whose first event, the task itself, has this id. Its events count in a budget of many logs.
    pub fn starting_at(seq: u64, task: Task, budget: &Arc<LogBudget>) -> Self {
        let window = Window::new(seq, Timestamp::now(), task, LogBounds::default());
        Self::with(window.within(budget.clone()))
    }

    /// The log of an existing task, from numbers, times and events. The first event must be the task, and the numbers must
    /// rise.
    pub fn restore(
        bounds: LogBounds,
        events: impl IntoIterator<Item = (u64, Timestamp, Event)>,
    ) -> Result<Self, LogError> {
        let mut events = events.into_iter();
        let Some((seq, at, Event::Task(task))) = events.next() else { return Err(LogError::NoTask) };
        let log = Self::with(Window::new(seq, at, *task, bounds));
        for (seq, at, event) in events {
            log.push_at(seq, at, event)?;
        }
        Ok(log)
    }

    fn with(window: Window) -> Self {
        Self { inner: Mutex::new(Inner { window, closed: false }), changed: Notify::new() }
    }

    /// Appends an event and returns its number. A closed log ignores the event and returns its last number.
    ///
    /// A status without a time gets that of the event.
    pub fn push(&self, event: impl Into<Event>) -> u64 {
        self.push_many([event.into()])
    }

    /// Appends events at once, so that readers wake once, and returns the last number.
    pub fn push_many(&self, events: impl IntoIterator<Item = Event>) -> u64 {
        self.push_many_at(Timestamp::now(), events)
    }

    /// Appends events of another time than now.
    pub fn push_many_at(&self, at: Timestamp, events: impl IntoIterator<Item = Event>) -> u64 {
        let last = {
            let mut inner = self.lock();
            for event in events {
                let next = inner.window.last_seq() + 1;
                if let Err(error) = inner.append(next, at, event) {
                    tracing::warn!(task = inner.window.summary().id, %error, "event dropped");
                }
            }
            inner.window.last_seq()
        };
        self.changed.notify_waiters();
        last
    }

    /// Appends what several events add at once, so that readers wake once: with ids from that of each event on, or after the
    /// last of the log, whichever is greater.
    pub fn push_from<'a>(&self, at: Timestamp, additions: impl IntoIterator<Item = (u64, Addition<'a>)>) {
        {
            let mut inner = self.lock();
            for (first, addition) in additions {
                if let Err(error) = inner.add(first, at, addition) {
                    tracing::warn!(task = inner.window.summary().id, %error, "event dropped");
                }
            }
        }
        self.changed.notify_waiters();
    }

    /// Appends an event with a number, which must be above the last.
    pub fn push_at(&self, seq: u64, at: Timestamp, event: impl Into<Event>) -> Result<(), LogError> {
        self.lock().append(seq, at, event.into())?;
        self.changed.notify_waiters();
        Ok(())
    }

    /// Adds a client's message to the task's history and returns its number. Streams do not show it, because clients would
    /// take it for the whole response. A task that waited is working again.
    pub fn note(&self, at: Timestamp, message: Message) -> u64 {
        self.push_many_at(at, [message.into()])
    }

    /// Shows a submitted task as working since `at`. Streams have no event for it.
    pub fn mark_working(&self, at: Timestamp) {
        self.lock().window.mark_working(at);
    }

    /// Closes the log; readers end once they have read everything.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_waiters();
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// The number of the newest event.
    pub fn last_seq(&self) -> u64 {
        self.lock().window.last_seq()
    }

    pub fn task_id(&self) -> String {
        self.lock().window.summary().id.clone()
    }

    pub fn state(&self) -> TaskState {
        self.lock().window.summary().status.state
    }

    /// The current task.
    pub fn snapshot(&self) -> Task {
        self.snapshot_at(u64::MAX).1
    }

    /// The current task without its artifacts.
    pub fn summary(&self) -> Task {
        self.lock().window.summary().clone()
    }

    /// The task after the event `seq`, with that event's number. A number beyond the end, or of a dropped event, means the
    /// last event; one before the first event means the first.
    pub fn snapshot_at(&self, seq: u64) -> (u64, Task) {
        let snapshot = self.lock().window.until(seq);
        snapshot.into_task()
    }

    /// The approximate size in memory in bytes.
    pub fn bytes(&self) -> usize {
        self.lock().window.weight()
    }

    /// A reader of the events after the number `after`.
    pub fn cursor(self: &Arc<Self>, after: u64) -> Cursor {
        Cursor { log: Arc::clone(self), after, taken: VecDeque::new() }
    }

    /// The next events after `after`, at most `limit`, and whether there will be no more after them.
    pub(super) fn read(&self, after: u64, limit: usize) -> (Vec<Arc<LoggedEvent>>, bool) {
        let mut inner = self.lock();
        let (batch, all) = inner.window.read(after, limit);
        (batch, all && inner.closed)
    }

    /// Completes at the next change after this call.
    fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn add(&mut self, first: u64, at: Timestamp, addition: Addition<'_>) -> Result<(), LogError> {
        let next = |inner: &Self| first.max(inner.window.last_seq() + 1);
        match addition {
            Addition::Events(events) => {
                events.into_iter().try_for_each(|event| self.append(next(self), at, event))
            }
            Addition::Text(..) if self.closed => Err(LogError::Closed),
            Addition::Text(template, text) => {
                self.window.append_text(next(self), at, template, text);
                Ok(())
            }
        }
    }

    fn append(&mut self, seq: u64, at: Timestamp, event: Event) -> Result<(), LogError> {
        let last = self.window.last_seq();
        if self.closed {
            return Err(LogError::Closed);
        }
        if seq <= last {
            return Err(LogError::OutOfOrder { seq, last });
        }
        self.window.append(seq, at, event);
        Ok(())
    }
}

/// A reader's position in a task's log. If the next events were dropped, the cursor returns a snapshot of the task with the
/// number of the last event in it.
#[derive(Debug)]
pub struct Cursor {
    log: Arc<TaskLog>,
    after: u64,
    taken: VecDeque<Arc<LoggedEvent>>,
}

impl Cursor {
    /// Waits for the next event; `None` once the log is closed and read to its end. Cancel safe.
    pub async fn next(&mut self) -> Option<Arc<LoggedEvent>> {
        while self.taken.is_empty() {
            let log = Arc::clone(&self.log);
            // Registered before the read, so that no change in between is missed.
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

    /// The next event if it is available.
    pub fn ready(&mut self) -> Option<Arc<LoggedEvent>> {
        if self.taken.is_empty() {
            self.take();
        }
        self.taken.pop_front()
    }

    /// Reads the available events; `false` if there are none and the log is closed.
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

#[cfg(test)]
#[path = "task_log_tests.rs"]
mod tests;
