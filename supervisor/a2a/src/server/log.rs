//! A task's log: append-only, numbered, read by cursors.
//!
//! There is no channel between a task and its readers. A reader is a position in the log, so that nothing is
//! lost for a slow one and a stalled one costs nobody else anything.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::cursor::Cursor;
use super::projection::Projection;
use crate::model::{Event, Task, TaskState};
use crate::v03::{self, proto::StreamResponse};
use crate::version::ProtocolVersion;

/// The events of one task, from its first on.
#[derive(Debug)]
pub struct TaskLog {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug)]
struct Inner {
    events: Vec<Arc<LoggedEvent>>,
    projection: Projection,
    closed: bool,
}

/// An event with its place in the log.
#[derive(Debug)]
pub struct LoggedEvent {
    seq: u64,
    event: Event,
    v0_3: OnceLock<Bytes>,
    v1_0: OnceLock<Bytes>,
    proto_v0_3: OnceLock<Bytes>,
}

/// Why a log does not take an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The log is closed.
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
    /// A log begins with its task.
    #[error("failed to restore a task's log: its first event is not the task")]
    NoTask,
}

impl TaskLog {
    /// The log of a new task; event 1 is the task itself.
    pub fn new(task: Task) -> Self {
        let projection = Projection::new(task.clone());
        let first = Arc::new(LoggedEvent::new(1, task.into()));
        Self::with(Inner { events: vec![first], projection, closed: false })
    }

    /// The log of a task that is known already, for example after a restart. The first event must be the
    /// task itself, and the numbers must rise.
    pub fn restore(events: impl IntoIterator<Item = (u64, Event)>) -> Result<Self, LogError> {
        let mut events = events.into_iter();
        let Some((seq, Event::Task(task))) = events.next() else { return Err(LogError::NoTask) };
        let projection = Projection::new((*task).clone());
        let first = Arc::new(LoggedEvent::new(seq, Event::Task(task)));
        let mut inner = Inner { events: vec![first], projection, closed: false };
        for (seq, event) in events {
            inner.append(seq, event)?;
        }
        Ok(Self::with(inner))
    }

    fn with(inner: Inner) -> Self {
        Self { inner: Mutex::new(inner), changed: Notify::new() }
    }

    /// Appends an event and returns its number. A closed log stays as it is; the number is then the last.
    pub fn push(&self, event: impl Into<Event>) -> u64 {
        self.push_many([event.into()])
    }

    /// Appends events at once, so that readers wake once, and returns the last number.
    pub fn push_many(&self, events: impl IntoIterator<Item = Event>) -> u64 {
        let last = {
            let mut inner = self.lock();
            for event in events {
                let next = inner.last_seq() + 1;
                if let Err(error) = inner.append(next, event) {
                    tracing::warn!(task = inner.projection.task().id, %error, "event dropped");
                }
            }
            inner.last_seq()
        };
        self.changed.notify_waiters();
        last
    }

    /// Appends an event under a number of the caller's, above all before it.
    pub fn push_at(&self, seq: u64, event: impl Into<Event>) -> Result<(), LogError> {
        self.lock().append(seq, event.into())?;
        self.changed.notify_waiters();
        Ok(())
    }

    /// Nothing more will come; readers end once they have read everything.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_waiters();
    }

    /// Whether nothing more will come.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// The number of the newest event.
    pub fn last_seq(&self) -> u64 {
        self.lock().last_seq()
    }

    /// The task's state.
    pub fn state(&self) -> TaskState {
        self.lock().projection.task().status.state
    }

    /// The task as it is now.
    pub fn snapshot(&self) -> Task {
        self.lock().projection.task().clone()
    }

    /// The task as it was after the event `seq`, with that event's number; a number that the log has not
    /// reached means now, one before its first event means the first.
    pub fn snapshot_at(&self, seq: u64) -> (u64, Task) {
        let events = {
            let inner = self.lock();
            if seq >= inner.last_seq() {
                return (inner.last_seq(), inner.projection.task().clone());
            }
            let end = inner.events.partition_point(|event| event.seq <= seq).max(1);
            inner.events.iter().take(end).cloned().collect::<Vec<_>>()
        };
        fold(&events).unwrap_or_else(|| (self.last_seq(), self.snapshot()))
    }

    /// A reader of what comes after the number `after`.
    pub fn cursor(self: &Arc<Self>, after: u64) -> Cursor {
        Cursor::new(Arc::clone(self), after)
    }

    /// The next events after `after`, at most `limit`, and whether there will be no more after them.
    pub(super) fn read(&self, after: u64, limit: usize) -> (Vec<Arc<LoggedEvent>>, bool) {
        let inner = self.lock();
        let start = inner.events.partition_point(|event| event.seq <= after);
        let ready = inner.events.get(start..).unwrap_or_default();
        let batch: Vec<_> = ready.iter().take(limit).cloned().collect();
        let drained = inner.closed && batch.len() == ready.len();
        (batch, drained)
    }

    /// Completes at the next change after this call.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// A panic elsewhere cannot leave the log half changed in a way that readers would mind.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn last_seq(&self) -> u64 {
        self.events.last().map_or(0, |event| event.seq)
    }

    fn append(&mut self, seq: u64, event: Event) -> Result<(), LogError> {
        let last = self.last_seq();
        if self.closed {
            return Err(LogError::Closed);
        }
        if seq <= last {
            return Err(LogError::OutOfOrder { seq, last });
        }
        self.projection.apply(&event);
        self.events.push(Arc::new(LoggedEvent::new(seq, event)));
        Ok(())
    }
}

fn fold(events: &[Arc<LoggedEvent>]) -> Option<(u64, Task)> {
    let (first, rest) = events.split_first()?;
    let Event::Task(task) = &first.event else { return None };
    let mut projection = Projection::new((**task).clone());
    for logged in rest {
        projection.apply(&logged.event);
    }
    Some((events.last()?.seq, projection.task().clone()))
}

impl LoggedEvent {
    pub(super) const fn new(seq: u64, event: Event) -> Self {
        Self { seq, event, v0_3: OnceLock::new(), v1_0: OnceLock::new(), proto_v0_3: OnceLock::new() }
    }

    /// Its number.
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// The event.
    pub const fn event(&self) -> &Event {
        &self.event
    }

    /// The event in the JSON of a version; made once, then shared by all readers.
    pub fn json(&self, version: ProtocolVersion) -> Result<&Bytes, serde_json::Error> {
        let cell = match version {
            ProtocolVersion::V0_3 => &self.v0_3,
            ProtocolVersion::V1_0 => &self.v1_0,
        };
        once(cell, || encode(&self.event, version))
    }

    /// The event in the JSON of 0.3's REST binding, the `StreamResponse` of `a2a.v1`; made once as well.
    pub fn proto_json_v0_3(&self) -> Result<&Bytes, serde_json::Error> {
        once(&self.proto_v0_3, || serde_json::to_vec(&StreamResponse::from(self.event.clone())))
    }
}

/// What is in the cell, else what `make` makes.
fn once(
    cell: &OnceLock<Bytes>,
    make: impl FnOnce() -> Result<Vec<u8>, serde_json::Error>,
) -> Result<&Bytes, serde_json::Error> {
    if let Some(bytes) = cell.get() {
        return Ok(bytes);
    }
    let bytes = Bytes::from(make()?);
    Ok(cell.get_or_init(|| bytes))
}

fn encode(event: &Event, version: ProtocolVersion) -> Result<Vec<u8>, serde_json::Error> {
    match version {
        ProtocolVersion::V0_3 => serde_json::to_vec(&v03::Event::from(event.clone())),
        ProtocolVersion::V1_0 => serde_json::to_vec(event),
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
