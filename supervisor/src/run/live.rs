//! The tasks in memory: which of them are under way, and the logs of those and of the newest others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caipe_a2a::server::TaskLog;
use tokio_util::sync::CancellationToken;

/// Events of ended tasks that stay in memory for whoever asks again; older tasks are read from the store.
const REMEMBERED: u64 = 20_000;

/// The tasks in memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Live(Arc<Mutex<Tasks>>);

#[derive(Debug, Default)]
struct Tasks {
    logs: HashMap<String, Arc<TaskLog>>,
    under_way: HashMap<String, Handle>,
    /// Ended ones with the number of their events, oldest first.
    ended: VecDeque<(String, u64)>,
    /// The sum of these numbers.
    remembered: u64,
}

/// A hold on a task that is under way.
#[derive(Debug, Clone)]
pub(super) struct Handle {
    /// Stops it.
    pub(super) stop: CancellationToken,
    /// Cancelled once it is under way no more.
    pub(super) over: CancellationToken,
}

/// The right to carry on a task, which only one has at a time; it lasts until it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    live: Live,
    task: String,
    handle: Handle,
}

impl Live {
    /// Claims a task, or returns the hold on it that there is.
    pub(super) fn claim(&self, task: &str) -> Result<Claim, Handle> {
        let handle = Handle { stop: CancellationToken::new(), over: CancellationToken::new() };
        let mut tasks = self.lock();
        if let Some(known) = tasks.under_way.get(task) {
            return Err(known.clone());
        }
        tasks.under_way.insert(task.to_owned(), handle.clone());
        Ok(Claim { live: self.clone(), task: task.to_owned(), handle })
    }

    /// A task's log, if it is in memory.
    pub(super) fn log(&self, task: &str) -> Option<Arc<TaskLog>> {
        self.lock().logs.get(task).cloned()
    }

    /// Keeps a task's log in memory, in place of an older one.
    pub(super) fn remember(&self, task: &str, log: Arc<TaskLog>) {
        self.lock().logs.insert(task.to_owned(), log);
    }

    /// Keeps the log of an ended task in memory for a while, at the cost of older ones.
    pub(super) fn retire(&self, task: &str) {
        let mut tasks = self.lock();
        let events = tasks.logs.get(task).map_or(0, |log| log.last_seq());
        tasks.ended.push_back((task.to_owned(), events));
        tasks.remembered += events;
        while tasks.remembered > REMEMBERED
            && let Some((oldest, events)) = tasks.ended.pop_front()
        {
            tasks.remembered -= events;
            if tasks.logs.get(&oldest).is_some_and(|log| log.is_closed()) {
                tasks.logs.remove(&oldest);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    /// Cancelled when the task shall stop.
    pub(super) fn stop(&self) -> CancellationToken {
        self.handle.stop.clone()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.live.lock().under_way.remove(&self.task);
        self.handle.over.cancel();
    }
}
