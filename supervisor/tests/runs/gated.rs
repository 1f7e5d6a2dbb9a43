//! A store whose writes a test can hold up, refuse or count.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caipe_store::{
    Changes, Commit, Control, ControlMessage, EventChunk, FactChange, FactRecord, FactStore, Lease,
    LeaseTerm, LiveEvents, LoggedEvent, MemoryStore, OutboxEntry, PushRecord, Store, StoreError,
    StoredConversation, TaskFilter, TaskRecord, Topic,
};
use jiff::Timestamp;

/// Stands around every write, and may hold it up or refuse it.
#[async_trait]
pub(crate) trait Gate: std::fmt::Debug + Send + Sync {
    /// Before the write.
    async fn admit(&self, commit: &Commit) -> Result<(), StoreError>;

    /// Before a lease is renewed.
    async fn renew(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Before a conversation is read.
    async fn read(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// After the write, before the writer learns of it.
    async fn written(&self) {}
}

/// A store with a gate.
#[derive(Debug, Default)]
pub(crate) struct Gated<G, S: ?Sized = MemoryStore> {
    pub(crate) inner: Arc<S>,
    pub(crate) gate: G,
}

#[async_trait]
impl<G: Gate, S: Store + ?Sized> FactStore for Gated<G, S> {
    async fn change_facts(&self, change: FactChange) -> Result<u64, StoreError> {
        self.inner.change_facts(change).await
    }

    async fn facts(&self, owner: &str, now: Timestamp) -> Result<Vec<FactRecord>, StoreError> {
        self.inner.facts(owner, now).await
    }
}

#[async_trait]
impl<G: Gate, S: Store + ?Sized> Store for Gated<G, S> {
    fn backend(&self) -> &'static str {
        "gated"
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn live(&self, task: &str) -> Option<LiveEvents> {
        self.inner.live(task)
    }

    fn has_live_readers(&self, task: &str) -> bool {
        self.inner.has_live_readers(task)
    }

    fn publish(&self, task: &str, events: EventChunk) {
        self.inner.publish(task, events);
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        self.gate.admit(&commit).await?;
        self.inner.commit(commit).await?;
        self.gate.written().await;
        Ok(())
    }

    async fn acquire(&self, task: &str, term: &LeaseTerm) -> Result<Lease, StoreError> {
        self.inner.acquire(task, term).await
    }

    async fn renew(&self, task: &str, token: u64, ttl: Duration) -> Result<(), StoreError> {
        self.gate.renew().await?;
        self.inner.renew(task, token, ttl).await
    }

    async fn release(&self, task: &str, token: u64) -> Result<(), StoreError> {
        self.inner.release(task, token).await
    }

    async fn abandoned(&self, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        self.inner.abandoned(limit).await
    }

    async fn take_turn(&self, context: &str, task: &str) -> Result<Option<String>, StoreError> {
        self.inner.take_turn(context, task).await
    }

    async fn send_control(&self, task: &str, message: ControlMessage) -> Result<(), StoreError> {
        self.inner.send_control(task, message).await
    }

    async fn controls(&self, task: &str, after: u64) -> Result<Vec<Control>, StoreError> {
        self.inner.controls(task, after).await
    }

    async fn outbox(&self) -> Result<Vec<OutboxEntry>, StoreError> {
        self.inner.outbox().await
    }

    async fn settle(&self, task: &str, id: &str) -> Result<(), StoreError> {
        self.inner.settle(task, id).await
    }

    async fn claim(&self, what: &str, term: &LeaseTerm) -> Result<bool, StoreError> {
        self.inner.claim(what, term).await
    }

    async fn end_claim(&self, what: &str, owner: &str) -> Result<(), StoreError> {
        self.inner.end_claim(what, owner).await
    }

    async fn watch(&self, task: &str, topic: Topic) -> Result<Changes, StoreError> {
        self.inner.watch(task, topic).await
    }

    async fn conversation(&self, context: &str) -> Result<Option<StoredConversation>, StoreError> {
        self.gate.read().await?;
        self.inner.conversation(context).await
    }

    async fn task(&self, id: &str) -> Result<Option<TaskRecord>, StoreError> {
        self.inner.task(id).await
    }

    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, StoreError> {
        self.inner.tasks(filter).await
    }

    async fn count_tasks(&self, filter: &TaskFilter) -> Result<u64, StoreError> {
        self.inner.count_tasks(filter).await
    }

    async fn put_push(&self, push: PushRecord) -> Result<(), StoreError> {
        self.inner.put_push(push).await
    }

    async fn pushes_of(&self, task: &str) -> Result<Vec<PushRecord>, StoreError> {
        self.inner.pushes_of(task).await
    }

    async fn pushes_pending(&self) -> Result<Vec<PushRecord>, StoreError> {
        self.inner.pushes_pending().await
    }

    async fn push_delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), StoreError> {
        self.inner.push_delivered(task, id, seq).await
    }

    async fn delete_push(&self, task: &str, id: &str) -> Result<(), StoreError> {
        self.inner.delete_push(task, id).await
    }

    async fn events(&self, task: &str, after: u64, limit: usize) -> Result<Vec<LoggedEvent>, StoreError> {
        self.inner.events(task, after, limit).await
    }

    async fn healthy(&self) -> Result<(), StoreError> {
        self.inner.healthy().await
    }
}
