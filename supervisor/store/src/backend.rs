//! The trait that every backend implements.

use std::time::Duration;

use async_trait::async_trait;

use crate::control::{Control, ControlMessage};
use crate::conversation::StoredConversation;
use crate::error::StoreError;
use crate::event_chunk::{EventChunk, LoggedEvent};
use crate::facts::FactStore;
use crate::live::LiveEvents;
use crate::notifier::{Changes, Topic};
use crate::push::PushRecord;
use crate::types::{Commit, Lease, LeaseTerm, OutboxEntry, Pruned, Retention, TaskFilter, TaskRecord};

/// Stores conversations, tasks, event logs and facts.
///
/// Every backend passes the same suite, `tests/contract`.
#[async_trait]
pub trait Store: FactStore {
    /// A bounded name of the backend, for logs and metrics.
    fn backend(&self) -> &'static str;

    /// Writes the whole commit or nothing, and returns once it is durable. Concurrent commits may share one write.
    /// Dropping the future does not cancel the commit.
    ///
    /// Rejects a commit whose [`Fence`](crate::Fence) has another token than the newest lease of its task, or whose task has
    /// no record, neither stored nor in this commit; events whose numbers are not above the last of their log; and a value
    /// above [`MAX_VALUE_BYTES`](crate::MAX_VALUE_BYTES). A commit whose number was committed before changes nothing.
    async fn commit(&self, commit: Commit) -> Result<(), StoreError>;

    /// Takes the exclusive right to write the log of a task: from now on, commits with the token of an earlier owner are
    /// refused. Fails if the task has no record, and with [`StoreError::LeaseTaken`] while the term of another owner lasts. An
    /// owner takes its own lease back at once.
    async fn acquire(&self, task: &str, term: &LeaseTerm) -> Result<Lease, StoreError>;

    /// Extends a lease: its term ends `ttl` from now. Also extends one whose term has ended if no other owner has taken it.
    /// Fails with [`StoreError::LeaseLost`] if it was released, or if the token is not the newest.
    async fn renew(&self, task: &str, token: u64, ttl: Duration) -> Result<(), StoreError>;

    /// Ends a lease, so that another owner need not wait for the end of its term. Does nothing if the token is not the newest.
    async fn release(&self, task: &str, token: u64) -> Result<(), StoreError>;

    /// The tasks under way that no process runs: their lease has ended or was released. At most `limit`.
    async fn abandoned(&self, limit: usize) -> Result<Vec<TaskRecord>, StoreError>;

    /// Gives the turn of a conversation to a task, whose lease the caller has: one task at a time may change it. Returns the
    /// task that has the turn, if that is another one that is under way or has an owner. A new task has the turn of a new
    /// conversation.
    async fn take_turn(&self, context: &str, task: &str) -> Result<Option<String>, StoreError>;

    /// Sends a message to the owner of a task. Returns once it is durable. Does nothing if the task has received a message with
    /// this id; a backend remembers the ids of at least the last [`MAX_CONTROLS`](crate::MAX_CONTROLS) messages.
    ///
    /// Fails if the task has no record, if the body is larger than [`MAX_CONTROL_BYTES`](crate::MAX_CONTROL_BYTES), and with
    /// [`StoreError::MailboxFull`] if as many messages wait as may.
    async fn send_control(&self, task: &str, message: ControlMessage) -> Result<(), StoreError>;

    /// The messages to the owner of a task that are not handled and have a number above `after`, in order.
    async fn controls(&self, task: &str, after: u64) -> Result<Vec<Control>, StoreError>;

    /// What must still be done after commits, of all tasks, by task and id.
    async fn outbox(&self) -> Result<Vec<OutboxEntry>, StoreError>;

    /// Removes an entry of the outbox that is done, or is not tried again. Does nothing if it was removed.
    async fn settle(&self, task: &str, id: &str) -> Result<(), StoreError>;

    /// Takes the right to do something that one process does at a time, or keeps it for the term. Returns whether the owner has
    /// it, which is not so while the term of another owner lasts.
    async fn claim(&self, what: &str, term: &LeaseTerm) -> Result<bool, StoreError>;

    /// Ends a claim, so that another owner need not wait for the end of its term. Does nothing if another owner has it.
    async fn end_claim(&self, what: &str, owner: &str) -> Result<(), StoreError>;

    /// The changes of a task from now on, made by any process. See [`Follower`](crate::Follower), which reads the events.
    async fn watch(&self, task: &str, topic: Topic) -> Result<Changes, StoreError>;

    /// Whether other processes may use the store at the same time.
    fn is_shared(&self) -> bool {
        false
    }

    /// The events that the owner of a task shows before they are stored, from now on. Some may be missing. `None` if no other
    /// process uses the store.
    fn live(&self, task: &str) -> Option<LiveEvents> {
        let _ = task;
        None
    }

    /// Whether [`Store::publish`] reaches a reader.
    fn has_live_readers(&self, task: &str) -> bool {
        let _ = task;
        false
    }

    /// Passes events that are shown and not stored yet to the readers of [`Store::live`], at once and without a guarantee.
    fn publish(&self, task: &str, events: EventChunk) {
        let _ = (task, events);
    }

    /// A conversation as last committed.
    async fn conversation(&self, context: &str) -> Result<Option<StoredConversation>, StoreError>;

    async fn task(&self, id: &str) -> Result<Option<TaskRecord>, StoreError>;

    /// The tasks that match, newest change first; of two in the same microsecond, the greater id.
    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, StoreError>;

    /// How many tasks match, whatever the place and the limit of the filter.
    async fn count_tasks(&self, filter: &TaskFilter) -> Result<u64, StoreError>;

    /// The events of a task with a sequence number above `after`, in order, at most `limit`.
    async fn events(&self, task: &str, after: u64, limit: usize) -> Result<Vec<LoggedEvent>, StoreError>;

    /// Stores a push configuration of a task; replaces the one with the same id. It is removed with its task.
    ///
    /// Fails if the task has no record, or if the body is larger than [`MAX_PUSH_BYTES`](crate::MAX_PUSH_BYTES).
    async fn put_push(&self, push: PushRecord) -> Result<(), StoreError>;

    /// The push configurations of a task, by their ids.
    async fn pushes_of(&self, task: &str) -> Result<Vec<PushRecord>, StoreError>;

    /// The push configurations of all tasks, by task and id, without those that are done
    /// ([`PushRecord::DONE`]).
    async fn pushes_pending(&self) -> Result<Vec<PushRecord>, StoreError>;

    /// Records that the events up to number `seq` were delivered. The number never falls. Does nothing if the
    /// configuration was removed.
    async fn push_delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), StoreError>;

    /// Removes a push configuration, if it exists.
    async fn delete_push(&self, task: &str, id: &str) -> Result<(), StoreError>;

    /// Whether the backend can be reached and written to.
    async fn healthy(&self) -> Result<(), StoreError>;

    /// What the backend's configuration does not guarantee, each as a sentence for an administrator. The default is nothing.
    async fn restrictions(&self) -> Vec<String> {
        Vec::new()
    }

    /// Removes tasks and conversations that are older than the policy allows.
    ///
    /// The default does nothing, for a backend whose entries expire by themselves.
    async fn prune(&self, retention: Retention) -> Result<Pruned, StoreError> {
        let _ = retention;
        Ok(Pruned::default())
    }

    /// Writes waiting commits and closes the backend; every later call fails. The default does nothing.
    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
