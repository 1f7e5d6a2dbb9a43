//! The trait that every backend implements.

use std::fmt;

use async_trait::async_trait;

use crate::push::PushRecord;
use crate::types::{Commit, LoggedEvent, Pruned, Retention, Saved, StoreError, TaskFilter, TaskRecord};

/// A place that keeps what must survive the process.
///
/// Every backend passes the same contract suite, `contract`.
#[async_trait]
pub trait Store: Send + Sync + fmt::Debug {
    /// A bounded name of the backend, for logs and metrics.
    fn backend(&self) -> &'static str;

    /// Writes all of it or nothing, and returns once it is durable. Commits that wait at the same time
    /// may share one write. A caller that stops waiting does not take its commit back.
    ///
    /// Refused are: events whose numbers do not follow the last of their log, so that a second writer is
    /// noticed; events of a task that has no record, neither stored nor in this commit; appends to a
    /// conversation that has no snapshot; and any single value above [`MAX_VALUE_BYTES`](crate::MAX_VALUE_BYTES).
    async fn commit(&self, commit: Commit) -> Result<(), StoreError>;

    /// A conversation as last committed, or `None` if there is none.
    async fn conversation(&self, context: &str) -> Result<Option<Saved>, StoreError>;

    /// A task, or `None` if there is none.
    async fn task(&self, id: &str) -> Result<Option<TaskRecord>, StoreError>;

    /// The tasks that match, newest change first; of two in the same microsecond, the greater id.
    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, StoreError>;

    /// How many tasks match, wherever the list begins and however long it may be.
    async fn count_tasks(&self, filter: &TaskFilter) -> Result<u64, StoreError>;

    /// The events of a task with a sequence number above `after`, in order, at most `limit`.
    async fn events(&self, task: &str, after: u64, limit: usize) -> Result<Vec<LoggedEvent>, StoreError>;

    /// Keeps a push configuration of a task, in place of the one of the same id. It goes when its task goes.
    ///
    /// Refused where the task has no record, or where the body is larger than
    /// [`MAX_PUSH_BYTES`](crate::MAX_PUSH_BYTES).
    async fn put_push(&self, push: PushRecord) -> Result<(), StoreError>;

    /// The push configurations of a task, by their ids.
    async fn pushes_of(&self, task: &str) -> Result<Vec<PushRecord>, StoreError>;

    /// The push configurations of all tasks, by task and id, without those that are done
    /// ([`PushRecord::DONE`]).
    async fn pushes_pending(&self) -> Result<Vec<PushRecord>, StoreError>;

    /// Notes that the events up to number `seq` were delivered. The number never falls; where there is no such
    /// configuration any more, nothing happens.
    async fn push_delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), StoreError>;

    /// Removes a push configuration, if it is there.
    async fn delete_push(&self, task: &str, id: &str) -> Result<(), StoreError>;

    /// Whether the backend can be reached and written to.
    async fn healthy(&self) -> Result<(), StoreError>;

    /// Removes what is older than the policy allows, and says how much that was.
    ///
    /// A backend whose entries expire by themselves keeps this default, which has nothing to do.
    async fn prune(&self, retention: Retention) -> Result<Pruned, StoreError> {
        let _ = retention;
        Ok(Pruned::default())
    }

    /// Writes what still waits and lets go of the backend; every later call fails. For a backend that holds
    /// nothing this default does.
    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
