//! Which configurations have something left to be delivered, and who is at it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

use super::store::Registration;
use crate::server::log::TaskLog;

/// All configurations that are not done, by task and id.
#[derive(Debug, Default)]
pub(super) struct Desk {
    tasks: Mutex<HashMap<String, HashMap<String, Order>>>,
    tickets: AtomicU64,
}

/// A configuration that is not done.
#[derive(Debug)]
struct Order {
    registration: Registration,
    /// Tells it from those of the same id before and after it.
    ticket: u64,
    /// Where its events are found, while somebody reads them.
    log: Option<Arc<TaskLog>>,
    worker: Option<AbortHandle>,
}

/// What a worker is to do.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) registration: Registration,
    ticket: u64,
}

impl Desk {
    /// Takes a configuration on, in place of the one of the same id, whose worker stops.
    pub(super) fn take(&self, registration: Registration) {
        let mut tasks = self.lock();
        let orders = tasks.entry(registration.task.clone()).or_default();
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let id = registration.id.clone();
        let order = Order { registration, ticket, log: None, worker: None };
        if let Some(worker) = orders.insert(id, order).and_then(|old| old.worker) {
            worker.abort();
        }
    }

    /// Whether anything is left for a task.
    pub(super) fn knows(&self, task: &str) -> bool {
        self.lock().contains_key(task)
    }

    /// Tells where a task's events are now found; `start` is called for what has no worker yet. Whoever found the log
    /// may be late: one that ended no further than the known one is passed over.
    pub(super) fn follow(&self, task: &str, log: &Arc<TaskLog>, start: impl Fn(Job) -> AbortHandle) {
        let mut tasks = self.lock();
        for order in tasks.get_mut(task).into_iter().flat_map(HashMap::values_mut) {
            if order.log.as_ref().is_some_and(|known| log.is_closed() && log.last_seq() <= known.last_seq()) {
                continue;
            }
            order.log = Some(Arc::clone(log));
            if order.worker.is_none() {
                let (registration, ticket) = (order.registration.clone(), order.ticket);
                order.worker = Some(start(Job { registration, ticket }));
            }
        }
    }

    /// The log to go on with after `drained`, which the worker has read to its end. If there is none, the worker
    /// must go; the next log gets another.
    pub(super) fn next_log(&self, job: &Job, drained: &Arc<TaskLog>) -> Option<Arc<TaskLog>> {
        let mut tasks = self.lock();
        let orders = tasks.get_mut(&job.registration.task)?;
        let order = orders.get_mut(&job.registration.id).filter(|order| order.ticket == job.ticket)?;
        if let Some(log) = order.log.as_ref().filter(|log| !Arc::ptr_eq(log, drained)) {
            return Some(Arc::clone(log));
        }
        (order.log, order.worker) = (None, None);
        order.registration.delivered = job.registration.delivered;
        None
    }

    /// Whether a job is still to be done, and not that of another configuration of the same id.
    pub(super) fn has(&self, job: &Job) -> bool {
        let tasks = self.lock();
        let order = tasks.get(&job.registration.task).and_then(|orders| orders.get(&job.registration.id));
        order.is_some_and(|order| order.ticket == job.ticket)
    }

    /// Nothing is left for a configuration, as the worker with this ticket found.
    pub(super) fn done(&self, job: &Job) {
        let mut tasks = self.lock();
        let Some(orders) = tasks.get_mut(&job.registration.task) else { return };
        if orders.get(&job.registration.id).is_some_and(|order| order.ticket == job.ticket) {
            orders.remove(&job.registration.id);
        }
        if orders.is_empty() {
            tasks.remove(&job.registration.task);
        }
    }

    /// Drops one configuration of a task, or all, and stops who is at it.
    pub(super) fn drop_orders(&self, task: &str, id: Option<&str>) {
        let mut tasks = self.lock();
        let Some(orders) = tasks.get_mut(task) else { return };
        orders.retain(|known, order| {
            let goes = id.is_none_or(|id| id == known);
            if let (true, Some(worker)) = (goes, &order.worker) {
                worker.abort();
            }
            !goes
        });
        if orders.is_empty() {
            tasks.remove(task);
        }
    }

    /// Whether somebody is at a log that nothing more comes to.
    pub(super) fn owes(&self) -> bool {
        let tasks = self.lock();
        let mut orders = tasks.values().flat_map(HashMap::values).filter(|order| order.worker.is_some());
        orders.any(|order| order.log.as_ref().is_some_and(|log| log.is_closed()))
    }

    /// Stops everybody; what is undelivered stays so.
    pub(super) fn stop(&self) {
        for order in self.lock().drain().flat_map(|(_, orders)| orders.into_values()) {
            if let Some(worker) = order.worker {
                worker.abort();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashMap<String, Order>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
