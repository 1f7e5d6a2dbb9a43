//! The events of a task's log that are in memory, with the task before and after them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;

use super::log_entry::{LoggedEvent, task_content};
use super::projection::{self, Projection};
use super::text_piece::{TextPiece, TextTemplate};
use crate::model::{Event, Task};

/// The bounds of a task's log in memory. The newest event always stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBounds {
    /// Most events.
    pub events: usize,
    /// Most bytes, approximately, including the encoded forms.
    pub bytes: usize,
}

impl Default for LogBounds {
    fn default() -> Self {
        Self { events: 50_000, bytes: 64 << 20 }
    }
}

/// Events that a log keeps although the budget of all logs is used up, so that readers at its end miss none. Those readers are
/// the common ones.
const NEWEST: usize = 16;

/// The memory that the events of many logs may use together.
#[derive(Debug)]
pub struct LogBudget {
    limit: usize,
    used: AtomicUsize,
}

impl LogBudget {
    /// A budget of this many bytes. While it is used up, each log that grows drops its oldest events.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    /// Approximately the bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The bytes that may be in use.
    pub const fn limit(&self) -> usize {
        self.limit
    }
}

/// The newest events of a log. Older events are dropped.
#[derive(Debug)]
pub(super) struct Window {
    bounds: LogBounds,
    budget: Option<Arc<LogBudget>>,
    events: VecDeque<Arc<LoggedEvent>>,
    /// The size of the events.
    bytes: usize,
    /// The task after the newest event, without its artifacts: the events and `before` have those already.
    now: Task,
    /// The task before the oldest event.
    before: Projection,
    /// The number of the newest event that was dropped, 0 while none was.
    dropped: u64,
    last: u64,
    /// A snapshot of the task at one of the events, for readers of dropped events.
    snapshot: Option<Arc<LoggedEvent>>,
    /// The template of the newest piece of text.
    piece: Option<Arc<TextTemplate>>,
}

impl Window {
    pub(super) fn new(seq: u64, at: Timestamp, mut task: Task, bounds: LogBounds) -> Self {
        task.status.timestamp.get_or_insert(at);
        let first = LoggedEvent::new(seq, at, task.clone().into(), &mut None);
        let (now, before) = (projection::without_artifacts(&task), Projection::new(task));
        let bytes = first.weight();
        let events = VecDeque::from([Arc::new(first)]);
        let (budget, piece, snapshot) = Default::default();
        Self { bounds, budget, events, bytes, now, before, dropped: 0, last: seq, snapshot, piece }
    }

    /// The same, within the budget of all logs.
    pub(super) fn within(mut self, budget: Arc<LogBudget>) -> Self {
        budget.used.fetch_add(self.bytes, Ordering::Relaxed);
        self.budget = Some(budget);
        self
    }

    /// Appends an event; its number is above the last.
    pub(super) fn append(&mut self, seq: u64, at: Timestamp, event: Event) {
        let event = LoggedEvent::new(seq, at, event, &mut self.piece);
        self.append_logged(event);
    }

    /// Appends a piece of text; its number is above the last.
    pub(super) fn append_text(&mut self, seq: u64, at: Timestamp, template: Arc<TextTemplate>, text: &str) {
        let piece = TextPiece::new(template, text);
        self.append_logged(LoggedEvent::piece(seq, at, piece));
    }

    fn append_logged(&mut self, event: LoggedEvent) {
        projection::summarize(&mut self.now, &event);
        self.last = event.seq();
        self.bytes += event.weight();
        if let Some(budget) = &self.budget {
            budget.used.fetch_add(event.weight(), Ordering::Relaxed);
        }
        self.events.push_back(Arc::new(event));
        while self.is_over() {
            self.drop_oldest();
        }
    }

    pub(super) fn mark_working(&mut self, at: Timestamp) {
        projection::mark_working(&mut self.now, at);
    }

    fn is_over(&self) -> bool {
        let count = self.events.len();
        let is_spent = |budget: &Arc<LogBudget>| count > NEWEST && budget.used() > budget.limit;
        count > 1
            && (count > self.bounds.events
                || self.bytes > self.bounds.bytes
                || self.budget.as_ref().is_some_and(is_spent))
    }

    fn drop_oldest(&mut self) {
        let Some(oldest) = self.events.pop_front() else { return };
        self.bytes -= oldest.weight();
        if let Some(budget) = &self.budget {
            budget.used.fetch_sub(oldest.weight(), Ordering::Relaxed);
        }
        self.dropped = oldest.seq();
        self.before.apply(&oldest);
        self.snapshot.take_if(|fresh| fresh.seq() < oldest.seq());
    }

    pub(super) const fn last_seq(&self) -> u64 {
        self.last
    }

    /// The task after the newest event, without its artifacts.
    pub(super) const fn summary(&self) -> &Task {
        &self.now
    }

    /// The approximate size in bytes.
    pub(super) fn weight(&self) -> usize {
        self.bytes + task_content(&self.now) + task_content(self.before.task())
    }

    /// The next events after `after`, at most `limit`, and whether these are all. A snapshot of the task replaces dropped
    /// events.
    pub(super) fn read(&mut self, after: u64, limit: usize) -> (Vec<Arc<LoggedEvent>>, bool) {
        if after < self.dropped {
            let fresh = self.shared_snapshot();
            let all = fresh.seq() == self.last;
            return (vec![fresh], all);
        }
        let start = self.index_after(after);
        let batch: Vec<_> = self.events.range(start..).take(limit).cloned().collect();
        let all = start + batch.len() == self.events.len();
        (batch, all)
    }

    /// The index of the first event after `after`. Most readers are near the end, and a search would touch many events that are
    /// not in the processor's cache.
    fn index_after(&self, after: u64) -> usize {
        let newest = self.events.iter().rev().take(NEWEST);
        let newer = newest.take_while(|event| event.seq() > after).count();
        if newer < NEWEST {
            return self.events.len() - newer;
        }
        self.events.partition_point(|event| event.seq() <= after)
    }

    /// A snapshot of the task, shared by all readers of dropped events while the events after it are in memory.
    fn shared_snapshot(&mut self) -> Arc<LoggedEvent> {
        if let Some(snapshot) = &self.snapshot {
            return snapshot.clone();
        }
        let (seq, task) = self.until(self.last).into_task();
        self.snapshot.insert(Arc::new(LoggedEvent::detached(seq, task.into()))).clone()
    }

    /// The task after the event `seq`; after the newest event if `seq` is beyond the end or was dropped.
    pub(super) fn until(&self, seq: u64) -> Snapshot {
        let before = self.before.clone();
        if seq >= self.last || seq < self.dropped {
            let events = self.events.iter().cloned().collect();
            return Snapshot { seq: self.last, before, events, summary: Some(self.now.clone()) };
        }
        let end = self.events.partition_point(|event| event.seq() <= seq);
        let end = if self.dropped == 0 { end.max(1) } else { end };
        let events: Vec<_> = self.events.range(..end).cloned().collect();
        let seq = events.last().map_or(self.dropped, |event| event.seq());
        Snapshot { seq, before, events, summary: None }
    }
}

/// A task after one of its events, not computed yet, so that a log is locked only briefly.
#[derive(Debug)]
pub(super) struct Snapshot {
    seq: u64,
    before: Projection,
    events: Vec<Arc<LoggedEvent>>,
    /// The current task without its artifacts, if this is a snapshot of it: its state can change without an event.
    summary: Option<Task>,
}

impl Snapshot {
    /// The number of the last event in the task, and the task.
    pub(super) fn into_task(self) -> (u64, Task) {
        let Self { seq, mut before, events, summary } = self;
        for event in events {
            before.apply(&event);
        }
        let task = before.into_task();
        let Some(summary) = summary else { return (seq, task) };
        (seq, Task { artifacts: task.artifacts, ..summary })
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}
