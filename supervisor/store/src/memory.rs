//! A store in memory: for tests, and for data that may be lost with the process.

mod facts;
mod transfer;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::backend::Store;
use crate::commit_rules::{LogPosition, Owner, Refusal, admit, admit_new, changed_task, check};
use crate::control::{Control, ControlMessage, MAX_CONTROLS};
use crate::conversation::{ConversationChange, ListChange, StoredConversation};
use crate::error::StoreError;
use crate::event_chunk::{self, EventChunk, LoggedEvent};
use crate::lease::LeaseTable;
use crate::live::{LiveEvents, LiveReaders};
use crate::notifier::{Changes, Topic, Watchers};
use crate::push::{PushChange, PushRecord};
use crate::types::{Commit, Lease, LeaseTerm, OutboxEntry, Pruned, Retention, TaskFilter, TaskRecord};

/// A store in memory. It loses its data when the process ends.
#[derive(Default)]
pub struct MemoryStore {
    data: Mutex<StoredData>,
    leases: LeaseTable,
    watchers: Watchers,
    live: Arc<LiveReaders>,
    restriction: Option<String>,
}

#[derive(Default)]
struct StoredData {
    conversations: HashMap<String, Conversation>,
    tasks: HashMap<String, Task>,
    owners: HashMap<String, Owner>,
    facts: facts::Facts,
    import: Option<transfer::Import>,
}

struct Conversation {
    touched: Timestamp,
    stored: StoredConversation,
}

#[derive(Default)]
struct Mailbox {
    /// The waiting messages, and the last of the handled ones, whose ids are remembered.
    messages: VecDeque<Control>,
    handled: u64,
}

struct Task {
    record: TaskRecord,
    position: LogPosition,
    reserved: u64,
    // Shared, so that readers parse them outside the lock.
    log: Vec<Arc<EventChunk>>,
    pushes: BTreeMap<String, PushRecord>,
    outbox: BTreeMap<String, OutboxEntry>,
    mailbox: Mailbox,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store in place of one that could not be used, with the reason.
    pub fn instead_of(reason: String) -> Self {
        Self { restriction: Some(reason), ..Self::default() }
    }

    fn data(&self) -> MutexGuard<'_, StoredData> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn backend(&self) -> &'static str {
        "memory"
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        check(&commit)?;
        let changed = changed_task(&commit).map(str::to_owned);
        self.leases
            .commit(commit, async |commit| {
                self.data().apply(commit, Timestamp::now()).map_err(|refusal| refusal.by("memory"))
            })
            .await?;
        if let Some(task) = changed {
            self.watchers.events.notify(&task);
        }
        Ok(())
    }

    async fn acquire(&self, task: &str, term: &LeaseTerm) -> Result<Lease, StoreError> {
        self.leases
            .acquire(task, term, async || {
                let mut data = self.data();
                let unknown = || Refusal::UnknownTask(task.to_owned()).by("memory");
                let Task { position, reserved, mailbox, .. } =
                    data.tasks.get_mut(task).ok_or_else(unknown)?;
                (position.token, position.number) = (position.token + 1, 0);
                let has_controls = mailbox.waiting(0).next().is_some();
                Ok(Lease { token: position.token, reserved: *reserved, has_controls })
            })
            .await
    }

    async fn renew(&self, task: &str, token: u64, ttl: Duration) -> Result<(), StoreError> {
        self.leases.renew(task, token, ttl)
    }

    async fn release(&self, task: &str, token: u64) -> Result<(), StoreError> {
        self.leases.release(task, token);
        Ok(())
    }

    async fn abandoned(&self, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        let data = self.data();
        let under_way = data.tasks.values().map(|task| &task.record).filter(|it| it.phase.is_under_way());
        Ok(under_way.filter(|it| !self.leases.is_held(&it.id)).take(limit).cloned().collect())
    }

    async fn take_turn(&self, context: &str, task: &str) -> Result<Option<String>, StoreError> {
        self.leases.take_turn(self, context, task).await
    }

    async fn send_control(&self, task: &str, message: ControlMessage) -> Result<(), StoreError> {
        message.check(task)?;
        let unknown = || Refusal::UnknownTask(task.to_owned()).by("memory");
        self.data().tasks.get_mut(task).ok_or_else(unknown)?.mailbox.put(task, message)?;
        self.watchers.controls.notify(task);
        Ok(())
    }

    async fn controls(&self, task: &str, after: u64) -> Result<Vec<Control>, StoreError> {
        let data = self.data();
        let waiting = |task: &Task| task.mailbox.waiting(after).cloned().collect();
        Ok(data.tasks.get(task).map(waiting).unwrap_or_default())
    }

    async fn outbox(&self) -> Result<Vec<OutboxEntry>, StoreError> {
        let mut entries: Vec<_> =
            self.data().tasks.values().flat_map(|task| task.outbox.values()).cloned().collect();
        entries.sort_unstable_by(|a, b| (&a.task, &a.id).cmp(&(&b.task, &b.id)));
        Ok(entries)
    }

    async fn settle(&self, task: &str, id: &str) -> Result<(), StoreError> {
        if let Some(task) = self.data().tasks.get_mut(task) {
            task.outbox.remove(id);
        }
        Ok(())
    }

    async fn claim(&self, what: &str, term: &LeaseTerm) -> Result<bool, StoreError> {
        Ok(self.leases.claim(what, term))
    }

    async fn end_claim(&self, what: &str, owner: &str) -> Result<(), StoreError> {
        self.leases.end_claim(what, owner);
        Ok(())
    }

    async fn watch(&self, task: &str, topic: Topic) -> Result<Changes, StoreError> {
        Ok(self.watchers.watch(task, topic))
    }

    fn live(&self, task: &str) -> Option<LiveEvents> {
        Some(self.live.read(task))
    }

    fn has_live_readers(&self, task: &str) -> bool {
        self.live.has(task)
    }

    fn publish(&self, task: &str, events: EventChunk) {
        self.live.deliver(task, events);
    }

    async fn conversation(&self, context: &str) -> Result<Option<StoredConversation>, StoreError> {
        Ok(self.data().conversations.get(context).map(|found| found.stored.clone()))
    }

    async fn task(&self, id: &str) -> Result<Option<TaskRecord>, StoreError> {
        Ok(self.data().tasks.get(id).map(|task| task.record.clone()))
    }

    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, StoreError> {
        let data = self.data();
        let beyond = filter.beyond.as_ref().map(|place| (place.updated.as_microsecond(), place.id.as_str()));
        let mut found: Vec<_> = data.matching(filter).map(|record| (place_of(record), record)).collect();
        found.retain(|(place, _)| beyond.is_none_or(|beyond| *place < beyond));
        found.sort_unstable_by_key(|(place, _)| std::cmp::Reverse(*place));
        let limit = if filter.limit == 0 { usize::MAX } else { filter.limit };
        Ok(found.into_iter().take(limit).map(|(_, record)| record.clone()).collect())
    }

    async fn count_tasks(&self, filter: &TaskFilter) -> Result<u64, StoreError> {
        Ok(self.data().matching(filter).count() as u64)
    }

    async fn events(&self, task: &str, after: u64, limit: usize) -> Result<Vec<LoggedEvent>, StoreError> {
        let mut events = Vec::new();
        let chunks = self.data().chunks(task, after, limit);
        for chunk in chunks {
            event_chunk::read(task, (chunk.first, &chunk.json), &mut events, (after, limit))?;
        }
        Ok(events)
    }

    async fn put_push(&self, push: PushRecord) -> Result<(), StoreError> {
        let change = PushChange::put(push)?;
        self.data().change_push(change).map_err(|refusal| refusal.by("memory"))
    }

    async fn pushes_of(&self, task: &str) -> Result<Vec<PushRecord>, StoreError> {
        let data = self.data();
        Ok(data.tasks.get(task).map(|task| task.pushes.values().cloned().collect()).unwrap_or_default())
    }

    async fn pushes_pending(&self) -> Result<Vec<PushRecord>, StoreError> {
        let data = self.data();
        let all = data.tasks.values().flat_map(|task| task.pushes.values());
        let mut pending: Vec<_> = all.filter(|push| push.delivered < PushRecord::DONE).cloned().collect();
        pending.sort_unstable_by(|a, b| (&a.task, &a.id).cmp(&(&b.task, &b.id)));
        Ok(pending)
    }

    async fn push_delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), StoreError> {
        let change = PushChange::delivered(task, id, seq);
        self.data().change_push(change).map_err(|refusal| refusal.by("memory"))
    }

    async fn delete_push(&self, task: &str, id: &str) -> Result<(), StoreError> {
        self.data().change_push(PushChange::delete(task, id)).map_err(|refusal| refusal.by("memory"))
    }

    async fn healthy(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn restrictions(&self) -> Vec<String> {
        self.restriction.iter().cloned().collect()
    }

    async fn prune(&self, retention: Retention) -> Result<Pruned, StoreError> {
        Ok(self.data().prune(retention))
    }
}

impl Mailbox {
    fn waiting(&self, after: u64) -> impl Iterator<Item = &Control> {
        let after = after.max(self.handled);
        self.messages.iter().filter(move |control| control.number > after)
    }

    fn put(&mut self, task: &str, message: ControlMessage) -> Result<(), StoreError> {
        if self.messages.iter().any(|known| known.message.id == message.id) {
            return Ok(());
        }
        if self.waiting(0).count() >= MAX_CONTROLS {
            return Err(StoreError::MailboxFull { task: task.to_owned() });
        }
        let number = self.messages.back().map_or(self.handled, |last| last.number) + 1;
        self.messages.push_back(Control { number, message });
        Ok(())
    }

    fn handle(&mut self, handled: u64) {
        self.handled = self.handled.max(handled);
        let forgotten = self.handled.saturating_sub(MAX_CONTROLS as u64);
        self.messages.retain(|control| control.number > forgotten);
    }
}

impl StoredData {
    /// The tasks of a filter, without its place and its limit.
    fn matching(&self, filter: &TaskFilter) -> impl Iterator<Item = &TaskRecord> {
        self.tasks.values().map(|task| &task.record).filter(|record| matches(filter, record))
    }

    fn apply(&mut self, commit: Commit, at: Timestamp) -> Result<(), Refusal> {
        if let (Some(_), Some(record)) = (&commit.create, &commit.task) {
            let (is_known, owner) = (self.tasks.contains_key(&record.id), self.owners.get(&record.context));
            admit_new(record, is_known, owner)?;
        }
        let position = commit.fence.as_ref().and_then(|fence| self.tasks.get(&fence.task));
        if !admit(&commit, position.map(|task| task.position))? {
            return Ok(());
        }
        if let Some(record) = commit.task {
            self.put_task(record);
        }
        if let Some(change) = commit.conversation {
            self.change_conversation(commit.context, change, at);
        }
        if let Some(fence) = commit.fence
            && let Some(task) = self.tasks.get_mut(&fence.task)
        {
            task.position.number = fence.number;
            task.reserved = task.reserved.max(fence.reserved);
            task.mailbox.handle(fence.handled);
            task.outbox.extend(commit.outbox.into_iter().map(|entry| (entry.id.clone(), entry)));
            task.position.last = commit.events.last().map_or(task.position.last, |chunk| chunk.last);
            task.log.extend(commit.events.into_iter().map(Arc::new));
        }
        Ok(())
    }

    fn put_task(&mut self, record: TaskRecord) {
        if !self.owners.contains_key(&record.context) {
            self.owners.insert(record.context.clone(), Owner(record.owner.clone()));
        }
        if let Some(task) = self.tasks.get_mut(&record.id) {
            task.record = record;
        } else {
            let (position, log, pushes, outbox, mailbox) = Default::default();
            let id = record.id.clone();
            self.tasks.insert(id, Task { record, position, reserved: 0, log, pushes, outbox, mailbox });
        }
    }

    fn change_conversation(&mut self, context: String, change: ConversationChange, at: Timestamp) {
        let fresh = || Conversation { touched: at, stored: StoredConversation::default() };
        let conversation = self.conversations.entry(context).or_insert_with(fresh);
        (conversation.touched, conversation.stored.run) = (at, change.run);
        for ListChange { list, keep, append } in change.lists {
            let items = conversation.stored.lists.entry(list.clone()).or_default();
            items.truncate(usize::try_from(keep).unwrap_or(usize::MAX));
            items.extend(append);
            if items.is_empty() {
                conversation.stored.lists.remove(&list);
            }
        }
    }

    fn change_push(&mut self, change: PushChange) -> Result<(), Refusal> {
        match change {
            PushChange::Put(push) => {
                let task = self.tasks.get_mut(&push.task);
                let task = task.ok_or_else(|| Refusal::UnknownTask(push.task.clone()))?;
                task.pushes.insert(push.id.clone(), push);
            }
            PushChange::Delivered { task, id, seq } => {
                if let Some(push) = self.tasks.get_mut(&task).and_then(|task| task.pushes.get_mut(&id)) {
                    push.delivered = push.delivered.max(seq);
                }
            }
            PushChange::Delete { task, id } => {
                if let Some(task) = self.tasks.get_mut(&task) {
                    task.pushes.remove(&id);
                }
            }
        }
        Ok(())
    }

    fn chunks(&self, task: &str, after: u64, limit: usize) -> Vec<Arc<EventChunk>> {
        let log = self.tasks.get(task).map_or(&[][..], |task| &task.log);
        let begin = log.partition_point(|chunk| chunk.last <= after);
        // Each chunk has at least one event.
        log.iter().skip(begin).take(limit).cloned().collect()
    }

    fn prune(&mut self, retention: Retention) -> Pruned {
        let before = (self.tasks.len(), self.conversations.len());
        if let Some(cutoff) = retention.tasks_before {
            self.tasks.retain(|_, task| !(task.record.phase.is_terminal() && task.record.updated < cutoff));
        }
        if let Some(cutoff) = retention.conversations_before {
            self.forget_conversations(cutoff);
        }
        let Self { tasks, conversations, owners, .. } = self;
        let used: HashSet<_> = tasks.values().map(|task| task.record.context.as_str()).collect();
        owners.retain(|context, _| used.contains(context.as_str()) || conversations.contains_key(context));
        Pruned { tasks: before.0 - self.tasks.len(), conversations: before.1 - self.conversations.len() }
    }

    fn forget_conversations(&mut self, cutoff: Timestamp) {
        let records = self.tasks.values().map(|task| &task.record);
        let busy: HashSet<_> = records
            .filter(|record| record.phase.is_under_way())
            .map(|record| record.context.as_str())
            .collect();
        let old: HashSet<_> = (self.conversations.iter())
            .filter(|(context, found)| found.touched < cutoff && !busy.contains(context.as_str()))
            .map(|(context, _)| context.clone())
            .collect();
        self.tasks.retain(|_, task| !old.contains(&task.record.context));
        self.conversations.retain(|context, _| !old.contains(context));
    }
}

/// The sort key of lists, whose order is descending.
fn place_of(record: &TaskRecord) -> (i64, &str) {
    (record.updated.as_microsecond(), record.id.as_str())
}

fn matches(filter: &TaskFilter, record: &TaskRecord) -> bool {
    filter.context.as_ref().is_none_or(|context| *context == record.context)
        && filter.owner.as_ref().is_none_or(|owner| Some(owner) == record.owner.as_ref())
        && filter.since.is_none_or(|since| record.updated.as_microsecond() >= since.as_microsecond())
        && (filter.phases.is_empty() || filter.phases.contains(&record.phase))
}
