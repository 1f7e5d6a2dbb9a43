//! The configurations with undelivered notifications, and their workers.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

use super::store::Registration;
use crate::server::task_log::TaskLog;

/// The configurations with undelivered notifications, by task and id.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    tasks: Mutex<HashMap<String, HashMap<String, Entry>>>,
    generations: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    registration: Registration,
    /// Distinguishes configurations of the same id that replace each other.
    generation: u64,
    /// The log that the worker reads.
    log: Option<Arc<TaskLog>>,
    worker: Option<AbortHandle>,
}

/// The work of one worker.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) registration: Registration,
    generation: u64,
}

impl Jobs {
    /// Adds a configuration. Replaces the one of the same id and stops its worker.
    pub(super) fn add(&self, registration: Registration) {
        let mut tasks = self.lock();
        let entries = tasks.entry(registration.task.clone()).or_default();
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        let id = registration.id.clone();
        let entry = Entry { registration, generation, log: None, worker: None };
        if let Some(worker) = entries.insert(id, entry).and_then(|old| old.worker) {
            worker.abort();
        }
    }

    /// Adds a configuration, unless a worker delivers one of the same id.
    pub(super) fn add_idle(&self, registration: Registration) {
        let tasks = self.lock();
        let known = tasks.get(&registration.task).and_then(|entries| entries.get(&registration.id));
        if known.is_none_or(|entry| entry.worker.is_none()) {
            drop(tasks);
            self.add(registration);
        }
    }

    /// The configurations that have a worker.
    pub(super) fn served(&self) -> Vec<Registration> {
        let tasks = self.lock();
        let entries = tasks.values().flat_map(HashMap::values).filter(|entry| entry.worker.is_some());
        entries.map(|entry| entry.registration.clone()).collect()
    }

    /// Removes the configurations without a worker that are not pending, and from `pending` those with a worker.
    pub(super) fn retain_pending(&self, pending: &mut Vec<Registration>) {
        let mut tasks = self.lock();
        let stored: HashSet<_> = pending.iter().map(|known| (known.task.clone(), known.id.clone())).collect();
        tasks.retain(|task, entries| {
            entries
                .retain(|id, entry| entry.worker.is_some() || stored.contains(&(task.clone(), id.clone())));
            !entries.is_empty()
        });
        pending.retain(|known| {
            let entry = tasks.get(&known.task).and_then(|entries| entries.get(&known.id));
            entry.is_none_or(|entry| entry.worker.is_none())
        });
    }

    /// Whether a task has undelivered notifications.
    pub(super) fn contains(&self, task: &str) -> bool {
        self.lock().contains_key(task)
    }

    /// Sets the log of a task; `start` starts the missing workers. Ignores a closed log that ends no later than the
    /// current one, because calls may arrive out of order.
    pub(super) fn follow(&self, task: &str, log: &Arc<TaskLog>, start: impl Fn(Job) -> AbortHandle) {
        let mut tasks = self.lock();
        for entry in tasks.get_mut(task).into_iter().flat_map(HashMap::values_mut) {
            if entry.log.as_ref().is_some_and(|known| log.is_closed() && log.last_seq() <= known.last_seq()) {
                continue;
            }
            entry.log = Some(Arc::clone(log));
            if entry.worker.is_none() {
                let (registration, generation) = (entry.registration.clone(), entry.generation);
                entry.worker = Some(start(Job { registration, generation }));
            }
        }
    }

    /// The log that follows `drained`, which the worker has read to its end. Without one the worker must stop; the next
    /// log gets a new worker.
    pub(super) fn next_log(&self, job: &Job, drained: &Arc<TaskLog>) -> Option<Arc<TaskLog>> {
        let mut tasks = self.lock();
        let entries = tasks.get_mut(&job.registration.task)?;
        let entry =
            entries.get_mut(&job.registration.id).filter(|entry| entry.generation == job.generation)?;
        if let Some(log) = entry.log.as_ref().filter(|log| !Arc::ptr_eq(log, drained)) {
            return Some(Arc::clone(log));
        }
        (entry.log, entry.worker) = (None, None);
        entry.registration.delivered = job.registration.delivered;
        None
    }

    /// Whether the configuration of a job still exists and was not replaced.
    pub(super) fn is_current(&self, job: &Job) -> bool {
        let tasks = self.lock();
        let entry = tasks.get(&job.registration.task).and_then(|entries| entries.get(&job.registration.id));
        entry.is_some_and(|entry| entry.generation == job.generation)
    }

    /// Removes a configuration whose notifications are all delivered.
    pub(super) fn finish(&self, job: &Job) {
        let mut tasks = self.lock();
        let Some(entries) = tasks.get_mut(&job.registration.task) else { return };
        if entries.get(&job.registration.id).is_some_and(|entry| entry.generation == job.generation) {
            entries.remove(&job.registration.id);
        }
        if entries.is_empty() {
            tasks.remove(&job.registration.task);
        }
    }

    /// Removes one configuration of a task, or all, and stops their workers.
    pub(super) fn remove(&self, task: &str, id: Option<&str>) {
        let mut tasks = self.lock();
        let Some(entries) = tasks.get_mut(task) else { return };
        entries.retain(|known, entry| {
            let removed = id.is_none_or(|id| id == known);
            if let (true, Some(worker)) = (removed, &entry.worker) {
                worker.abort();
            }
            !removed
        });
        if entries.is_empty() {
            tasks.remove(task);
        }
    }

    /// The number of configurations.
    pub(super) fn count(&self) -> usize {
        self.lock().values().map(HashMap::len).sum()
    }

    /// Whether a worker is still reading a closed log.
    pub(super) fn has_undelivered_logs(&self) -> bool {
        let tasks = self.lock();
        let mut entries = tasks.values().flat_map(HashMap::values).filter(|entry| entry.worker.is_some());
        entries.any(|entry| entry.log.as_ref().is_some_and(|log| log.is_closed()))
    }

    /// Stops all workers.
    pub(super) fn stop(&self) {
        for entry in self.lock().drain().flat_map(|(_, entries)| entries.into_values()) {
            if let Some(worker) = entry.worker {
                worker.abort();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashMap<String, Entry>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "jobs_tests.rs"]
mod tests;
