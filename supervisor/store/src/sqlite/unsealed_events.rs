//! The unsealed events of each log: committed in the shared log, in no row of the events yet, and in memory for readers.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::event_range::EventRange;

/// The unsealed events (the *tail*) of each log. The writer changes them after each transaction. Readers read them before
/// the file: a log that is sealed in between is then found twice rather than not at all.
#[derive(Debug, Default)]
pub(super) struct UnsealedEvents(Mutex<Index>);

#[derive(Debug, Default)]
struct Index {
    by_task: HashMap<Arc<str>, Unsealed>,
    by_age: BTreeSet<(i64, Arc<str>)>,
}

#[derive(Debug)]
struct Unsealed {
    /// The place in the shared log where it begins.
    since: i64,
    range: EventRange,
    /// It could not be sealed. The writer tries again when it purges the shared log.
    stuck: bool,
}

impl UnsealedEvents {
    /// The number of the last event; `None` if the log has no tail.
    pub(super) fn last_seq(&self, task: &str) -> Option<u64> {
        self.lock().by_task.get(task).map(|tail| tail.range.last)
    }

    /// The size in bytes of a tail, 0 if there is none; `None` if it is stuck.
    pub(super) fn sealable(&self, task: &str) -> Option<usize> {
        match self.lock().by_task.get(task) {
            Some(tail) if tail.stuck => None,
            tail => Some(tail.map_or(0, |tail| tail.range.len())),
        }
    }

    pub(super) fn set_stuck(&self, task: &str) {
        if let Some(tail) = self.lock().by_task.get_mut(task) {
            tail.stuck = true;
        }
    }

    pub(super) fn get(&self, task: &str) -> Option<EventRange> {
        self.lock().by_task.get(task).map(|tail| tail.range.clone())
    }

    /// A task's tail if it has events after this one.
    pub(super) fn beyond(&self, task: &str, after: u64) -> Option<EventRange> {
        let index = self.lock();
        index.by_task.get(task).filter(|tail| tail.range.last > after).map(|tail| tail.range.clone())
    }

    /// The oldest tail for which `counts` is true, given its task and whether it is stuck: its place in the shared log and
    /// its task.
    pub(super) fn oldest(&self, counts: impl Fn(&str, bool) -> bool) -> Option<(i64, Arc<str>)> {
        let index = self.lock();
        let stuck = |task: &str| index.by_task.get(task).is_some_and(|tail| tail.stuck);
        index.by_age.iter().find(|(_, task)| counts(task, stuck(task))).cloned()
    }

    /// The tasks that have a tail.
    pub(super) fn tasks(&self) -> Vec<Arc<str>> {
        self.lock().by_task.keys().cloned().collect()
    }

    /// Removes a tail that was sealed.
    pub(super) fn remove(&self, task: &str) {
        let mut index = self.lock();
        if let Some((task, tail)) = index.by_task.remove_entry(task) {
            index.by_age.remove(&(tail.since, task));
        }
    }

    /// Appends to a tail. A new one begins at this place of the shared log.
    pub(super) fn grow(&self, task: &str, range: EventRange, since: i64) {
        let mut index = self.lock();
        if let Some(tail) = index.by_task.get_mut(task) {
            tail.range.append(&range);
        } else {
            let task: Arc<str> = task.into();
            index.by_age.insert((since, task.clone()));
            index.by_task.insert(task, Unsealed { since, range, stuck: false });
        }
    }

    /// A poisoned lock is usable: no change can stop halfway.
    fn lock(&self) -> MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
