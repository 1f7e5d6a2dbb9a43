//! Paces the rollouts that a change of the installation causes, such as a new version of the operator, so that it does
//! not restart every supervisor at once. Without clock: times are inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::{Duration, Instant};

use crate::defaults::RolloutLimits;
use crate::key::Key;

/// The shortest wait before a supervisor asks again.
const SHORTEST: Duration = Duration::from_secs(2);

/// The longest wait before a supervisor asks again.
const LONGEST: Duration = Duration::from_secs(30);

/// Whether a supervisor may roll out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permit {
    Granted,
    /// Why it has to wait, and when to ask again.
    Wait(String, Duration),
}

/// The progress of a supervisor's rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Running,
    Done,
    Failed,
}

/// The paced rollouts of all supervisors.
#[derive(Debug)]
pub struct Rollouts {
    limits: RolloutLimits,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The supervisors that roll out, each with whether it has failed.
    running: BTreeMap<Key, bool>,
    /// The waiting supervisors, by the order of their first request.
    waiting: BTreeSet<(u64, Key)>,
    places: BTreeMap<Key, u64>,
    requests: u64,
    last: Option<Instant>,
}

/// The numbers of supervisors, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub running: usize,
    pub waiting: usize,
    pub failed: usize,
}

impl Rollouts {
    pub fn new(limits: RolloutLimits) -> Self {
        Self { limits, inner: Mutex::default() }
    }

    /// Asks for a rollout. A supervisor that rolls out already is granted more.
    pub fn request(&self, key: &Key, now: Instant) -> Permit {
        let mut inner = self.lock();
        if inner.running.contains_key(key) {
            return Permit::Granted;
        }
        let place = inner.place(key);
        let Some((reason, wait)) = inner.obstacle(&self.limits, place, now) else {
            inner.leave_queue(key);
            inner.running.insert(key.clone(), false);
            inner.last = Some(now);
            return Permit::Granted;
        };
        Permit::Wait(reason, wait.clamp(SHORTEST, LONGEST))
    }

    /// Takes in the progress of a supervisor. Only granted rollouts count.
    pub fn record(&self, key: &Key, progress: Progress) {
        let mut inner = self.lock();
        inner.leave_queue(key);
        match (inner.running.get_mut(key), progress) {
            (Some(_), Progress::Done) => drop(inner.running.remove(key)),
            (Some(failed), progress) => *failed = progress == Progress::Failed,
            (None, _) => {}
        }
    }

    /// Forgets a deleted supervisor, or one that its user has changed.
    pub fn forget(&self, key: &Key) {
        let mut inner = self.lock();
        inner.leave_queue(key);
        inner.running.remove(key);
    }

    /// Forgets all supervisors: another operator leads.
    pub fn clear(&self) {
        *self.lock() = Inner::default();
    }

    pub fn counts(&self) -> Counts {
        let inner = self.lock();
        let failed = inner.failed();
        Counts { running: inner.running.len() - failed, waiting: inner.waiting.len(), failed }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The place in the queue, which starts at 0.
    fn place(&mut self, key: &Key) -> usize {
        let number = *self.places.entry(key.clone()).or_insert_with(|| {
            self.requests += 1;
            self.requests
        });
        let entry = (number, key.clone());
        let place = self.waiting.range(..&entry).count();
        self.waiting.insert(entry);
        place
    }

    fn leave_queue(&mut self, key: &Key) {
        if let Some(number) = self.places.remove(key) {
            self.waiting.remove(&(number, key.clone()));
        }
    }

    fn failed(&self) -> usize {
        self.running.values().filter(|failed| **failed).count()
    }

    /// Why the supervisor at this place has to wait, and for how long.
    fn obstacle(&self, limits: &RolloutLimits, place: usize, now: Instant) -> Option<(String, Duration)> {
        let most = usize::from(limits.max_concurrent);
        let failed = self.failed();
        if limits.max_failures > 0 && failed >= usize::from(limits.max_failures) {
            let reason = format!(
                "waits because {failed} of the supervisors that have rolled out since the last change of the operator failed"
            );
            return Some((reason, LONGEST));
        }
        let interval = Duration::from_secs(u64::from(limits.interval_seconds));
        let pause = self.last.map(|last| interval.saturating_sub(now.saturating_duration_since(last)));
        let pause = pause.unwrap_or_default();
        if place < most.saturating_sub(self.running.len()) && (pause.is_zero() || most == 0) {
            return None;
        }
        let reason =
            format!("waits for its turn: after a change of the operator, at most {most} roll out at once");
        // Those at the front ask more often.
        let turns = u32::try_from(place / most.max(1)).unwrap_or(u32::MAX);
        Some((reason, pause.max(SHORTEST.saturating_mul(turns.saturating_add(1)))))
    }
}

#[cfg(test)]
#[path = "rollouts_tests.rs"]
mod tests;
