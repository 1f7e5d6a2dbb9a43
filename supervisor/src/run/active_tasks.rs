//! The tasks in memory: the leases of those under way, and the logs of those and of the newest others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use caipe_a2a::server::{LogBudget, TaskLog};
use tokio_util::sync::CancellationToken;

/// The part of the budget of all logs that those of ended tasks may use; older tasks are read from the store.
const ENDED_PART: usize = 8;

/// How long a copy of a message waits until the first one is stored.
const RECORD_DEADLINE: Duration = Duration::from_secs(15);

/// The tasks in memory.
#[derive(Debug, Clone)]
pub(super) struct ActiveTasks {
    tasks: Arc<Mutex<Tasks>>,
    /// The memory of all logs.
    pub(super) budget: Arc<LogBudget>,
}

#[derive(Debug, Default)]
struct Tasks {
    logs: HashMap<String, Arc<TaskLog>>,
    running: HashMap<String, Handle>,
    /// The logs of tasks that other processes run.
    followed: HashMap<String, Weak<TaskLog>>,
    /// The closed logs with their sizes in bytes, oldest first.
    ended: VecDeque<(String, Arc<TaskLog>, usize)>,
    /// The sum of these sizes.
    ended_bytes: usize,
}

/// Controls a task that is under way.
#[derive(Debug, Clone)]
pub(super) struct Handle {
    pub(super) stop: CancellationToken,
    /// Cancelled once the lease is released.
    pub(super) over: CancellationToken,
    /// Cancelled once the message that took the lease is stored.
    recorded: CancellationToken,
}

impl Handle {
    /// Waits until the message that took the lease is stored, or the lease is released.
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

/// The exclusive right to run a task, until it is dropped.
#[derive(Debug)]
pub(super) struct TaskLease {
    active_tasks: ActiveTasks,
    task: String,
    handle: Handle,
}

impl ActiveTasks {
    /// No tasks, whose logs may use `log_memory` bytes together.
    pub(super) fn new(log_memory: usize) -> Self {
        Self { tasks: Arc::default(), budget: LogBudget::new(log_memory) }
    }

    /// The log of a task that another process runs, while it is read.
    pub(super) fn followed(&self, task: &str) -> Option<Arc<TaskLog>> {
        self.lock().followed.get(task).and_then(Weak::upgrade).filter(|log| !log.is_closed())
    }

    /// Notes the log of a task that another process runs.
    pub(super) fn follow(&self, task: &str, log: &Arc<TaskLog>) {
        let mut tasks = self.lock();
        tasks.followed.retain(|_, log| log.strong_count() > 0);
        tasks.followed.insert(task.to_owned(), Arc::downgrade(log));
    }

    /// Forgets the log of a task that this process does not run any more.
    pub(super) fn forget(&self, task: &str) {
        self.lock().logs.remove(task);
    }

    /// Takes the lease of a task, or returns the handle of the current one.
    pub(super) fn lease(&self, task: &str) -> Result<TaskLease, Handle> {
        let [stop, over, recorded] = std::array::from_fn(|_| CancellationToken::new());
        let handle = Handle { stop, over, recorded };
        let mut tasks = self.lock();
        if let Some(known) = tasks.running.get(task) {
            return Err(known.clone());
        }
        tasks.running.insert(task.to_owned(), handle.clone());
        Ok(TaskLease { active_tasks: self.clone(), task: task.to_owned(), handle })
    }

    /// Controls a task that is under way.
    pub(super) fn handle(&self, task: &str) -> Option<Handle> {
        self.lock().running.get(task).cloned()
    }

    /// A task's log, if it is in memory.
    pub(super) fn log(&self, task: &str) -> Option<Arc<TaskLog>> {
        self.lock().logs.get(task).cloned()
    }

    /// Stores a task's log in memory, in place of an older one.
    pub(super) fn remember(&self, task: &str, log: Arc<TaskLog>) {
        self.lock().logs.insert(task.to_owned(), log);
    }

    /// Marks the log of a task as closed. The oldest closed logs leave memory once all closed logs exceed the limit.
    pub(super) fn retire(&self, task: &str) {
        self.retire_within(task, self.budget.limit() / ENDED_PART);
    }

    fn retire_within(&self, task: &str, most: usize) {
        let Some(log) = self.log(task) else { return };
        let bytes = log.bytes();
        let mut tasks = self.lock();
        tasks.ended.push_back((task.to_owned(), log, bytes));
        tasks.ended_bytes += bytes;
        while tasks.ended_bytes > most
            && let Some((oldest, log, bytes)) = tasks.ended.pop_front()
        {
            tasks.ended_bytes -= bytes;
            // A task that was continued has a newer log.
            if tasks.logs.get(&oldest).is_some_and(|known| Arc::ptr_eq(known, &log)) {
                tasks.logs.remove(&oldest);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskLease {
    /// To be cancelled once the message that took the lease is stored.
    pub(super) fn recorded(&self) -> CancellationToken {
        self.handle.recorded.clone()
    }

    /// Cancelled to stop the task.
    pub(super) fn stop(&self) -> CancellationToken {
        self.handle.stop.clone()
    }
}

impl Drop for TaskLease {
    fn drop(&mut self) {
        self.active_tasks.lock().running.remove(&self.task);
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
        let active_tasks = ActiveTasks::new(usize::MAX);
        let most = 3 * log("t", 10_000).bytes();
        for task in ["a", "b", "c", "d"] {
            active_tasks.remember(task, log(task, 10_000));
            active_tasks.retire_within(task, most);
        }
        assert!(active_tasks.log("a").is_none() && active_tasks.log("b").is_some());
        active_tasks.remember("b", log("b", 10_000));
        active_tasks.remember("e", log("e", 20_000));
        active_tasks.retire_within("e", most);
        assert!(active_tasks.log("c").is_none() && active_tasks.log("d").is_some());
        assert!(active_tasks.log("b").is_some(), "the log that went on is not the one that ended");
    }
}
