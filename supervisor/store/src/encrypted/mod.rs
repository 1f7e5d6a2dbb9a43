//! A store whose values are encrypted, around any backend.
//!
//! Ids, times, phases, owners, numbers and the names of lists stay readable, because the backends search them.

mod facts;
mod keyring;
mod rotate;
mod values;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::backend::Store;
use crate::control::{Control, ControlMessage};
use crate::conversation::StoredConversation;
use crate::error::StoreError;
use crate::event_chunk::{self, EventChunk, LoggedEvent};
use crate::json::key_of;
use crate::live::LiveEvents;
use crate::notifier::{Changes, Topic};
use crate::push::{PushChange, PushRecord};
use crate::transfer::{RecordKind, Transfer};
use crate::types::{Commit, Lease, LeaseTerm, OutboxEntry, Pruned, Retention, TaskFilter, TaskRecord};
pub use keyring::Keyring;
pub use rotate::rotate;
use values::{place, place_of_item};

/// Most chunks of events in one read.
const CHUNKS: usize = 64;

/// A store whose values are encrypted. Values that were stored before are readable, and encrypted with their next write.
#[derive(Debug)]
pub struct EncryptedStore {
    inner: Arc<dyn Transfer>,
    keys: Keyring,
}

impl EncryptedStore {
    /// # Errors
    /// When a key is missing or wrong; see [`refuse_encrypted`].
    pub async fn open(inner: Arc<dyn Transfer>, keys: Keyring) -> Result<Self, StoreError> {
        let store = Self { inner, keys };
        for record in samples(&*store.inner).await? {
            store.keys.record(record)?;
        }
        Ok(store)
    }

    fn records(&self, records: Vec<TaskRecord>) -> Result<Vec<TaskRecord>, StoreError> {
        records.into_iter().map(|record| self.keys.record(record)).collect()
    }

    fn sealed(&self, mut commit: Commit) -> Result<Commit, StoreError> {
        // The limits are those of the values without encryption.
        crate::commit_rules::check(&commit)?;
        commit.task = commit.task.map(|record| self.keys.sealed_record(record)).transpose()?;
        let change = commit.conversation.map(|change| self.keys.sealed_conversation(&commit.context, change));
        commit.conversation = change.transpose()?;
        if let Some(fence) = &commit.fence {
            let chunks = commit.events.iter().map(|chunk| self.keys.sealed_chunk(&fence.task, chunk));
            commit.events = chunks.collect::<Result<_, _>>()?;
        }
        for entry in &mut commit.outbox {
            entry.body = self.keys.seal(&place(["outbox", &entry.task, &entry.id]), &entry.body)?;
        }
        Ok(commit)
    }
}

/// The newest task, and the first one that the backend lists.
async fn samples(store: &dyn Transfer) -> Result<Vec<TaskRecord>, StoreError> {
    let mut found = store.tasks(&TaskFilter { limit: 1, ..TaskFilter::default() }).await?;
    for id in store.list_ids(RecordKind::Task, None, 1).await?.ids {
        found.extend(store.task(&id).await?);
    }
    Ok(found)
}

/// An error for a store with encrypted values that is opened without keys. Looks at two tasks.
///
/// # Errors
/// When a value is encrypted, or a read fails.
pub async fn refuse_encrypted(store: &dyn Transfer) -> Result<(), StoreError> {
    for record in samples(store).await? {
        if let Some(id) = record.request.as_str().and_then(key_of) {
            let reason = format!(
                "its values are encrypted with the key {id:?}, and no keys are given: set CAIPE_STORE_ENCRYPTION_KEYS"
            );
            return Err(StoreError::Unavailable { backend: store.backend(), reason });
        }
    }
    Ok(())
}

#[async_trait]
impl Store for EncryptedStore {
    fn backend(&self) -> &'static str {
        self.inner.backend()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        self.inner.commit(self.sealed(commit)?).await
    }

    async fn acquire(&self, task: &str, term: &LeaseTerm) -> Result<Lease, StoreError> {
        self.inner.acquire(task, term).await
    }

    async fn renew(&self, task: &str, token: u64, ttl: Duration) -> Result<(), StoreError> {
        self.inner.renew(task, token, ttl).await
    }

    async fn release(&self, task: &str, token: u64) -> Result<(), StoreError> {
        self.inner.release(task, token).await
    }

    async fn abandoned(&self, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        self.records(self.inner.abandoned(limit).await?)
    }

    async fn take_turn(&self, context: &str, task: &str) -> Result<Option<String>, StoreError> {
        self.inner.take_turn(context, task).await
    }

    async fn send_control(&self, task: &str, message: ControlMessage) -> Result<(), StoreError> {
        message.check(task)?;
        let body = self.keys.seal(&place(["control", task, &message.id]), &message.body)?;
        self.inner.send_control(task, ControlMessage { body, ..message }).await
    }

    async fn controls(&self, task: &str, after: u64) -> Result<Vec<Control>, StoreError> {
        let open = |Control { number, message }: Control| {
            let body = self.keys.open(&place(["control", task, &message.id]), message.body)?;
            Ok(Control { number, message: ControlMessage { body, ..message } })
        };
        self.inner.controls(task, after).await?.into_iter().map(open).collect()
    }

    async fn outbox(&self) -> Result<Vec<OutboxEntry>, StoreError> {
        let open = |entry: OutboxEntry| {
            let body = self.keys.open(&place(["outbox", &entry.task, &entry.id]), entry.body)?;
            Ok(OutboxEntry { body, ..entry })
        };
        self.inner.outbox().await?.into_iter().map(open).collect()
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

    /// Live events pass through the memory of a server, and are not encrypted.
    fn live(&self, task: &str) -> Option<LiveEvents> {
        self.inner.live(task)
    }

    fn has_live_readers(&self, task: &str) -> bool {
        self.inner.has_live_readers(task)
    }

    fn publish(&self, task: &str, events: EventChunk) {
        self.inner.publish(task, events);
    }

    async fn conversation(&self, context: &str) -> Result<Option<StoredConversation>, StoreError> {
        let Some(StoredConversation { run, mut lists }) = self.inner.conversation(context).await? else {
            return Ok(None);
        };
        for (list, items) in &mut lists {
            for (number, item) in (0..).zip(items) {
                let sealed = std::mem::take(item);
                *item = self.keys.open(&place_of_item(context, list, number), sealed)?;
            }
        }
        Ok(Some(StoredConversation { run: self.keys.open(&place(["run", context]), run)?, lists }))
    }

    async fn task(&self, id: &str) -> Result<Option<TaskRecord>, StoreError> {
        self.inner.task(id).await?.map(|record| self.keys.record(record)).transpose()
    }

    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, StoreError> {
        self.records(self.inner.tasks(filter).await?)
    }

    async fn count_tasks(&self, filter: &TaskFilter) -> Result<u64, StoreError> {
        self.inner.count_tasks(filter).await
    }

    async fn events(&self, task: &str, after: u64, limit: usize) -> Result<Vec<LoggedEvent>, StoreError> {
        let (mut events, mut last) = (Vec::new(), after);
        while events.len() < limit {
            let chunks = self.inner.export_events(task, last, CHUNKS.min(limit)).await?;
            let Some(end) = chunks.last().map(|chunk| chunk.last) else { break };
            for chunk in chunks {
                let EventChunk { first, json, .. } = self.keys.chunk(task, chunk)?;
                event_chunk::read(task, (first, &json), &mut events, (after, limit))?;
            }
            last = end;
        }
        Ok(events)
    }

    async fn put_push(&self, push: PushRecord) -> Result<(), StoreError> {
        let PushChange::Put(push) = PushChange::put(push)? else { return Ok(()) };
        let body = self.keys.seal(&place(["push", &push.task, &push.id]), &push.body)?;
        self.inner.put_push(PushRecord { body, ..push }).await
    }

    async fn pushes_of(&self, task: &str) -> Result<Vec<PushRecord>, StoreError> {
        self.inner.pushes_of(task).await?.into_iter().map(|push| self.keys.push(push)).collect()
    }

    async fn pushes_pending(&self) -> Result<Vec<PushRecord>, StoreError> {
        self.inner.pushes_pending().await?.into_iter().map(|push| self.keys.push(push)).collect()
    }

    async fn push_delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), StoreError> {
        self.inner.push_delivered(task, id, seq).await
    }

    async fn delete_push(&self, task: &str, id: &str) -> Result<(), StoreError> {
        self.inner.delete_push(task, id).await
    }

    async fn healthy(&self) -> Result<(), StoreError> {
        self.inner.healthy().await
    }

    async fn restrictions(&self) -> Vec<String> {
        self.inner.restrictions().await
    }

    async fn prune(&self, retention: Retention) -> Result<Pruned, StoreError> {
        self.inner.prune(retention).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.inner.close().await
    }
}
