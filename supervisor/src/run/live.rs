//! The tasks in memory: which of them are under way, and the logs of those and of the newest others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caipe_a2a::server::TaskLog;
use tokio_util::sync::CancellationToken;

/// About how many bytes the logs of ended tasks may take in memory, for whoever asks again; older tasks are read
/// from the store.
const REMEMBERED: usize = 64 << 20;

/// How long a copy of a message waits until the first one is in the store, which may have to wait for its turn.
const RECORD_DEADLINE: Duration = Duration::from_secs(15);

/// The tasks in memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Live(Arc<Mutex<Tasks>>);

#[derive(Debug, Default)]
struct Tasks {
    logs: HashMap<String, Arc<TaskLog>>,
    under_way: HashMap<String, Handle>,
    /// Logs to which nothing more comes, with their bytes, oldest first.
    ended: VecDeque<(String, Arc<TaskLog>, usize)>,
    /// The sum of these bytes.
    remembered: usize,
}

/// A hold on a task that is under way.
#[derive(Debug, Clone)]
pub(super) struct Handle {
    /// Stops it.
    pub(super) stop: CancellationToken,
    /// Cancelled once it is under way no more.
    pub(super) over: CancellationToken,
    /// Cancelled once the message that made the claim is in the store.
    recorded: CancellationToken,
}

impl Handle {
    /// Waits until the message that made the claim is in the store, or the claim is over.
    pub(super) async fn until_recorded(&self) {
        let recorded = async {
            tokio::select! {
                () = self.recorded.cancelled() => {}
                () = self.over.cancelled() => {}
            }
        };
        drop(tokio::time::timeout(RECORD_DEADLINE, recorded).await);
    }
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
        let [stop, over, recorded] = std::array::from_fn(|_| CancellationToken::new());
        let handle = Handle { stop, over, recorded };
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

    /// Keeps the closed log of a task in memory for a while, at the cost of older ones.
    pub(super) fn retire(&self, task: &str) {
        self.retire_within(task, REMEMBERED);
    }

    fn retire_within(&self, task: &str, most: usize) {
        let Some(log) = self.log(task) else { return };
        let bytes = log.bytes();
        let mut tasks = self.lock();
        tasks.ended.push_back((task.to_owned(), log, bytes));
        tasks.remembered += bytes;
        while tasks.remembered > most
            && let Some((oldest, log, bytes)) = tasks.ended.pop_front()
        {
            tasks.remembered -= bytes;
            // A task that went on has a newer one.
            if tasks.logs.get(&oldest).is_some_and(|known| Arc::ptr_eq(known, &log)) {
                tasks.logs.remove(&oldest);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    /// To be cancelled once the message that made the claim is in the store.
    pub(super) fn recorded(&self) -> CancellationToken {
        self.handle.recorded.clone()
    }

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

#[cfg(test)]
mod tests {
    use caipe_a2a::model::{Message, Task};

    use super::*;

    fn log(task: &str, length: usize) -> Arc<TaskLog> {
        Arc::new(TaskLog::new(Task::submitted(task, "c", Message::user("m", "x".repeat(length)))))
    }

    #[test]
    fn ended_tasks_leave_memory_by_their_size_the_oldest_first() {
        let live = Live::default();
        let most = 3 * log("t", 10_000).bytes();
        for task in ["a", "b", "c", "d"] {
            live.remember(task, log(task, 10_000));
            live.retire_within(task, most);
        }
        assert!(live.log("a").is_none() && live.log("b").is_some());
        live.remember("b", log("b", 10_000));
        live.remember("e", log("e", 20_000));
        live.retire_within("e", most);
        assert!(live.log("c").is_none() && live.log("d").is_some());
        assert!(live.log("b").is_some(), "the log that went on is not the one that ended");
    }
}
