//! What was committed of the logs and is in no row of theirs yet: it is in the shared log, and here to be read.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::event_range::EventRange;

/// The ends of the logs that are written to. The writer changes them after each transaction; readers look into them
/// before they look into the file: what is sealed in between is then found twice rather than not at all.
#[derive(Debug, Default)]
pub(super) struct UnsealedEvents(Mutex<Index>);

#[derive(Debug, Default)]
struct Index {
    by_task: HashMap<Arc<str>, Unsealed>,
    by_age: BTreeSet<(i64, Arc<str>)>,
}

#[derive(Debug)]
struct Unsealed {
    /// Where in the shared log it begins.
    since: i64,
    range: EventRange,
    /// It could not be sealed, and is not tried again until the shared log is purged.
    stuck: bool,
}

impl UnsealedEvents {
    /// The number of the last event; `None` where the log has no tail.
    pub(super) fn last_seq(&self, task: &str) -> Option<u64> {
        self.lock().by_task.get(task).map(|tail| tail.range.last)
    }

    /// How many bytes long a tail is that may be sealed; `None` where it cannot be.
    pub(super) fn sealable(&self, task: &str) -> Option<usize> {
        match self.lock().by_task.get(task) {
            Some(tail) if tail.stuck => None,
            tail => Some(tail.map_or(0, |tail| tail.range.len())),
        }
    }

    /// Leaves a tail as it is from now on.
    pub(super) fn leave(&self, task: &str) {
        if let Some(tail) = self.lock().by_task.get_mut(task) {
            tail.stuck = true;
        }
    }

    /// A task's tail, as far as there is one.
    pub(super) fn get(&self, task: &str) -> Option<EventRange> {
        self.lock().by_task.get(task).map(|tail| tail.range.clone())
    }

    /// A task's tail if it has events after this one.
    pub(super) fn beyond(&self, task: &str, after: u64) -> Option<EventRange> {
        let index = self.lock();
        index.by_task.get(task).filter(|tail| tail.range.last > after).map(|tail| tail.range.clone())
    }

    /// The task with the oldest tail of those that count, by their names and whether they are stuck, and where in the
    /// shared log it begins.
    pub(super) fn oldest(&self, counts: impl Fn(&str, bool) -> bool) -> Option<(i64, Arc<str>)> {
        let index = self.lock();
        let stuck = |task: &str| index.by_task.get(task).is_some_and(|tail| tail.stuck);
        index.by_age.iter().find(|(_, task)| counts(task, stuck(task))).cloned()
    }

    /// The tasks that have one.
    pub(super) fn tasks(&self) -> Vec<Arc<str>> {
        self.lock().by_task.keys().cloned().collect()
    }

    /// Forgets a tail: it is in the file now.
    pub(super) fn remove(&self, task: &str) {
        let mut index = self.lock();
        if let Some((task, tail)) = index.by_task.remove_entry(task) {
            index.by_age.remove(&(tail.since, task));
        }
    }

    /// Lets a tail grow, or begin at this place of the shared log.
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

    /// A panic elsewhere leaves no tail half changed.
    fn lock(&self) -> MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
