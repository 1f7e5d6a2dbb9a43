//! What was committed of the logs and is in no row of theirs yet: it is in the journal, and here to be read.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::stretch::Stretch;

/// The ends of the logs that are written to. The writer changes them after each transaction; readers look into them
/// before they look into the file: what is sealed in between is then found twice rather than not at all.
#[derive(Debug, Default)]
pub(super) struct Tails(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    tails: HashMap<Arc<str>, Tail>,
    by_age: BTreeSet<(i64, Arc<str>)>,
}

#[derive(Debug)]
struct Tail {
    /// Where in the journal it begins.
    since: i64,
    stretch: Stretch,
    /// It could not be sealed, and is not tried again until the journal is purged.
    stuck: bool,
}

impl Tails {
    /// The number of the last event; `None` where the log has no tail.
    pub(super) fn last_seq(&self, task: &str) -> Option<u64> {
        self.lock().tails.get(task).map(|tail| tail.stretch.last)
    }

    /// How many bytes long a tail is that may be sealed; `None` where it cannot be.
    pub(super) fn sealable(&self, task: &str) -> Option<usize> {
        match self.lock().tails.get(task) {
            Some(tail) if tail.stuck => None,
            tail => Some(tail.map_or(0, |tail| tail.stretch.len())),
        }
    }

    /// Leaves a tail as it is from now on.
    pub(super) fn leave(&self, task: &str) {
        if let Some(tail) = self.lock().tails.get_mut(task) {
            tail.stuck = true;
        }
    }

    /// A task's tail, as far as there is one.
    pub(super) fn get(&self, task: &str) -> Option<Stretch> {
        self.lock().tails.get(task).map(|tail| tail.stretch.clone())
    }

    /// A task's tail if it has events after this one.
    pub(super) fn beyond(&self, task: &str, after: u64) -> Option<Stretch> {
        let kept = self.lock();
        kept.tails.get(task).filter(|tail| tail.stretch.last > after).map(|tail| tail.stretch.clone())
    }

    /// The task with the oldest tail of those that count, by their names and whether they are stuck, and where in the
    /// journal it begins.
    pub(super) fn oldest(&self, counts: impl Fn(&str, bool) -> bool) -> Option<(i64, Arc<str>)> {
        let kept = self.lock();
        let stuck = |task: &str| kept.tails.get(task).is_some_and(|tail| tail.stuck);
        kept.by_age.iter().find(|(_, task)| counts(task, stuck(task))).cloned()
    }

    /// The tasks that have one.
    pub(super) fn tasks(&self) -> Vec<Arc<str>> {
        self.lock().tails.keys().cloned().collect()
    }

    /// Forgets a tail: it is in the file now.
    pub(super) fn remove(&self, task: &str) {
        let mut kept = self.lock();
        if let Some((task, tail)) = kept.tails.remove_entry(task) {
            kept.by_age.remove(&(tail.since, task));
        }
    }

    /// Lets a tail grow, or begin at this place of the journal.
    pub(super) fn grow(&self, task: &str, stretch: Stretch, since: i64) {
        let mut kept = self.lock();
        if let Some(tail) = kept.tails.get_mut(task) {
            tail.stretch.append(&stretch);
        } else {
            let task: Arc<str> = task.into();
            kept.by_age.insert((since, task.clone()));
            kept.tails.insert(task, Tail { since, stretch, stuck: false });
        }
    }

    /// A panic elsewhere leaves no tail half changed.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
