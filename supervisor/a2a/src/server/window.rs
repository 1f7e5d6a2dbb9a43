//! The part of a task's log that is in memory, and the task at both of its ends.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;

use super::logged::{LoggedEvent, task_content};
use super::projection::Projection;
use crate::model::Task;

/// How much of a task's log stays in memory. The newest event always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBounds {
    /// Most events.
    pub events: usize,
    /// Most bytes, about: events are measured by what they say, with their encoded forms.
    pub bytes: usize,
}

impl Default for LogBounds {
    fn default() -> Self {
        Self { events: 50_000, bytes: 64 << 20 }
    }
}

/// The newest events of a log. What is older is in the task only.
#[derive(Debug)]
pub(super) struct Window {
    bounds: LogBounds,
    events: VecDeque<Arc<LoggedEvent>>,
    /// What the events weigh.
    bytes: usize,
    /// The task after the newest event.
    now: Projection,
    /// The task where the events go on.
    before: Projection,
    /// The number of the newest event that was dropped, 0 while none was.
    dropped: u64,
    last: u64,
    /// The task at some event that is still kept, for all whose place was dropped.
    fresh: Option<Arc<LoggedEvent>>,
}

impl Window {
    pub(super) fn new(seq: u64, at: Timestamp, mut task: Task, bounds: LogBounds) -> Self {
        task.status.timestamp.get_or_insert(at);
        let first = LoggedEvent::new(seq, at, task.clone().into());
        let (now, before) = (Projection::new(task.clone()), Projection::new(task));
        let bytes = first.weight();
        let events = VecDeque::from([Arc::new(first)]);
        Self { bounds, events, bytes, now, before, dropped: 0, last: seq, fresh: None }
    }

    /// Appends an event; its number is above the last.
    pub(super) fn append(&mut self, event: LoggedEvent) {
        self.now.apply(&event);
        self.last = event.seq();
        self.bytes += event.weight();
        self.events.push_back(Arc::new(event));
        while self.is_over() {
            self.drop_oldest();
        }
    }

    pub(super) fn mark_working(&mut self, at: Timestamp) {
        self.now.mark_working(at);
    }

    fn is_over(&self) -> bool {
        self.events.len() > 1 && (self.events.len() > self.bounds.events || self.bytes > self.bounds.bytes)
    }

    fn drop_oldest(&mut self) {
        let Some(oldest) = self.events.pop_front() else { return };
        self.bytes -= oldest.weight();
        self.dropped = oldest.seq();
        self.before.apply(&oldest);
        self.fresh.take_if(|fresh| fresh.seq() < oldest.seq());
    }

    pub(super) const fn last_seq(&self) -> u64 {
        self.last
    }

    pub(super) const fn task(&self) -> &Task {
        self.now.task()
    }

    /// About how many bytes the whole takes.
    pub(super) fn weight(&self) -> usize {
        let task = task_content(self.now.task());
        self.bytes + if self.dropped > 0 { 2 * task } else { task }
    }

    /// The next events after `after`, at most `limit`, and whether these are all. In place of events that were
    /// dropped there is the task as it is.
    pub(super) fn read(&mut self, after: u64, limit: usize) -> (Vec<Arc<LoggedEvent>>, bool) {
        if after < self.dropped {
            let fresh = self.fresh();
            let all = fresh.seq() == self.last;
            return (vec![fresh], all);
        }
        let start = self.behind(after);
        let batch: Vec<_> = self.events.range(start..).take(limit).cloned().collect();
        let all = start + batch.len() == self.events.len();
        (batch, all)
    }

    /// Where the events after `after` begin. Numbers mostly follow one another, so that the place can be reckoned: a
    /// search would touch many events that no cache holds any more.
    fn behind(&self, after: u64) -> usize {
        let first = self.events.front().map_or(0, |event| event.seq());
        let place = usize::try_from(after.saturating_add(1).saturating_sub(first)).unwrap_or(usize::MAX);
        let is_last = |at: usize| self.events.get(at).is_some_and(|event| event.seq() == after);
        match place.checked_sub(1) {
            Some(before) if is_last(before) => place,
            _ => self.events.partition_point(|event| event.seq() <= after),
        }
    }

    /// The task as it was at the newest event that nobody could have missed without being told. All that fell out
    /// share it, for as long as what comes after it is kept.
    fn fresh(&mut self) -> Arc<LoggedEvent> {
        let (last, now) = (self.last, &self.now);
        let make = || Arc::new(LoggedEvent::detached(last, now.task().clone().into()));
        self.fresh.get_or_insert_with(make).clone()
    }

    /// What makes the task as it was after the event `seq`, with the number of that event: a beginning and events
    /// to apply to it. The task as it is where `seq` is not reached yet, or was dropped.
    pub(super) fn until(&self, seq: u64) -> (u64, Projection, Vec<Arc<LoggedEvent>>) {
        if seq >= self.last || seq < self.dropped {
            return (self.last, self.now.clone(), Vec::new());
        }
        let end = self.events.partition_point(|event| event.seq() <= seq);
        let end = if self.dropped == 0 { end.max(1) } else { end };
        let events: Vec<_> = self.events.range(..end).cloned().collect();
        (events.last().map_or(self.dropped, |event| event.seq()), self.before.clone(), events)
    }
}
