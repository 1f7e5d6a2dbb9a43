//! Copies of a store in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Conversation, Mailbox, MemoryStore, StoredData, Task};
use crate::commit_rules::{LogPosition, Owner};
use crate::control::{Control, ControlMessage};
use crate::conversation::StoredConversation;
use crate::error::StoreError;
use crate::event_chunk::EventChunk;
use crate::json::{decode, encode};
use crate::push::PushRecord;
use crate::transfer::{
    ConversationRecord, IdPage, ImportBatch, ImportProgress, Record, RecordKind, TaskContent, Transfer,
    out_of_step,
};
use crate::types::OutboxEntry;

/// An import that has begun.
pub(super) struct Import {
    progress: ImportProgress,
    /// The last task was there before, so its events are left out.
    skips: bool,
}

#[async_trait]
impl Transfer for MemoryStore {
    async fn list_ids(
        &self,
        kind: RecordKind,
        after: Option<&str>,
        limit: usize,
    ) -> Result<IdPage, StoreError> {
        let data = self.data();
        let all: Vec<&String> = match kind {
            RecordKind::Conversation => data.conversations.keys().collect(),
            RecordKind::Task => data.tasks.keys().collect(),
            RecordKind::FactOwner => data.facts.owners().collect(),
        };
        let mut ids: Vec<String> =
            all.into_iter().filter(|id| after.is_none_or(|after| id.as_str() > after)).cloned().collect();
        ids.sort_unstable();
        ids.truncate(limit);
        let next = ids.last().filter(|_| ids.len() == limit).cloned();
        Ok(IdPage { ids, next })
    }

    async fn export_conversation(&self, context: &str) -> Result<Option<ConversationRecord>, StoreError> {
        let data = self.data();
        Ok(data.conversations.get(context).map(|found| ConversationRecord {
            context: context.to_owned(),
            owner: data.owners.get(context).cloned().map(Into::into),
            touched: found.touched.as_microsecond(),
            run: found.stored.run.clone(),
            lists: found.stored.lists.clone(),
        }))
    }

    async fn export_task(&self, task: &str) -> Result<Option<TaskContent>, StoreError> {
        let data = self.data();
        let Some(found) = data.tasks.get(task) else { return Ok(None) };
        Ok(Some(TaskContent {
            id: task.to_owned(),
            record: encode(&found.record)?,
            owner: data.owners.get(&found.record.context).cloned().map(Into::into),
            token: found.position.token,
            number: found.position.number,
            reserved: found.reserved,
            handled: found.mailbox.handled,
            controls: found.mailbox.messages.iter().cloned().map(Into::into).collect(),
            pushes: found.pushes.values().cloned().map(Into::into).collect(),
            outbox: found.outbox.values().cloned().map(Into::into).collect(),
        }))
    }

    async fn export_events(
        &self,
        task: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<EventChunk>, StoreError> {
        Ok(self.data().chunks(task, after, limit).iter().map(|chunk| (**chunk).clone()).collect())
    }

    async fn unfinished_import(&self) -> Result<Option<ImportProgress>, StoreError> {
        Ok(self.data().import.as_ref().map(|import| import.progress.clone()))
    }

    async fn begin_import(&self, export: &str) -> Result<(), StoreError> {
        let progress = ImportProgress { export: export.to_owned(), records: 0 };
        self.data().import = Some(Import { progress, skips: false });
        Ok(())
    }

    async fn import(&self, batch: ImportBatch) -> Result<u64, StoreError> {
        let mut data = self.data();
        let expected = ImportProgress { export: batch.export, records: batch.begin };
        let Some(mut import) = data.import.take_if(|import| import.progress == expected) else {
            return Err(out_of_step("memory"));
        };
        let mut left = 0;
        for record in batch.records {
            import.progress.records += 1;
            match record {
                Record::Conversation(record) => left += u64::from(!data.add_conversation(record)),
                Record::Task(task) => {
                    import.skips = !data.add_task(task)?;
                    left += u64::from(import.skips);
                }
                Record::Events(events) if !import.skips => {
                    if let Some(task) = data.tasks.get_mut(&events.task) {
                        for (first, last, json) in events.chunks {
                            task.position.last = last;
                            task.log.push(Arc::new(EventChunk { first, last, json }));
                        }
                    }
                }
                Record::Events(_) => {}
                Record::Facts(facts) => left += data.facts.add(&facts) as u64,
            }
        }
        data.import = Some(import);
        Ok(left)
    }

    async fn finish_import(&self) -> Result<(), StoreError> {
        self.data().import = None;
        Ok(())
    }
}

impl StoredData {
    /// `false` if it is there.
    fn add_conversation(&mut self, record: ConversationRecord) -> bool {
        let ConversationRecord { context, owner, touched, run, lists } = record;
        if self.conversations.contains_key(&context) {
            return false;
        }
        if let Some(owner) = owner {
            self.owners.entry(context.clone()).or_insert(Owner(owner.principal));
        }
        let touched = Timestamp::from_microsecond(touched).unwrap_or_default();
        let stored = StoredConversation { run, lists };
        self.conversations.insert(context, Conversation { touched, stored });
        true
    }

    /// `false` if it is there.
    fn add_task(&mut self, content: TaskContent) -> Result<bool, StoreError> {
        if self.tasks.contains_key(&content.id) {
            return Ok(false);
        }
        let TaskContent { id, token, number, reserved, handled, owner, .. } = content;
        let record: crate::TaskRecord = decode(|| format!("the record of task {id:?}"), &content.record)?;
        if let Some(owner) = owner {
            self.owners.entry(record.context.clone()).or_insert(Owner(owner.principal));
        }
        let messages: VecDeque<_> = (content.controls.into_iter())
            .map(|it| Control { number: it.number, message: ControlMessage { id: it.id, body: it.body } })
            .collect();
        let push = |push: crate::transfer::StoredPush| {
            let record =
                PushRecord { task: id.clone(), id: push.id, body: push.body, delivered: push.delivered };
            (record.id.clone(), record)
        };
        let entry = |entry: crate::transfer::StoredOutboxEntry| {
            let deadline = Timestamp::from_microsecond(entry.deadline).unwrap_or_default();
            let entry = OutboxEntry { task: id.clone(), id: entry.id, body: entry.body, deadline };
            (entry.id.clone(), entry)
        };
        let task = Task {
            record,
            position: LogPosition { token, number, last: 0 },
            reserved,
            log: Vec::new(),
            pushes: content.pushes.into_iter().map(push).collect(),
            outbox: content.outbox.into_iter().map(entry).collect(),
            mailbox: Mailbox { messages, handled },
        };
        self.tasks.insert(id, task);
        Ok(true)
    }
}
