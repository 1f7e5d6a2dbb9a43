//! Copies of the documents of a database.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use mongodb::bson::{Document, doc};
use mongodb::options::FindOptions;

use super::documents::{column, fits, number, optional, signed, text};
use super::error::Failure;
use super::leases::message;
use super::schema::{CONTROLS, CONVERSATIONS, EVENTS, FACTS, IMPORT, ITEMS, OUTBOX, PUSHES, TASKS};
use super::transaction::{Transaction, Work, transact};
use super::{BACKEND, MongodbStore, facts, presence, read};
use crate::error::StoreError;
use crate::event_chunk::EventChunk;
use crate::json::decode;
use crate::transfer::{
    ConversationRecord, EventsRecord, FactsRecord, IdPage, ImportBatch, ImportProgress, OwnerRecord, Record,
    RecordKind, StoredControl, StoredOutboxEntry, StoredPush, TaskContent, Transfer, out_of_step,
};
use crate::types::TaskRecord;

#[async_trait]
impl Transfer for MongodbStore {
    async fn is_in_use(&self) -> Result<bool, StoreError> {
        presence::is_served(&self.connection).await
    }

    async fn list_ids(
        &self,
        kind: RecordKind,
        after: Option<&str>,
        limit: usize,
    ) -> Result<IdPage, StoreError> {
        let (name, field, mut filter) = match kind {
            // A conversation that was never committed has only an owner.
            RecordKind::Conversation => (CONVERSATIONS, "_id", doc! { "run": { "$exists": true } }),
            RecordKind::Task => (TASKS, "_id", doc! {}),
            RecordKind::FactOwner => (FACTS, "owner", doc! {}),
        };
        if let Some(after) = after {
            filter.insert(field, doc! { "$gt": after });
        }
        let options = FindOptions::builder()
            .sort(doc! { field: 1 })
            .projection(doc! { field: 1 })
            .limit(i64::try_from(limit).unwrap_or(i64::MAX))
            .build();
        let found = self.connection.find(name, filter, options).await?;
        let ids = found.iter().map(|found| Ok(text(found, field)?.to_owned()));
        let mut ids: Vec<String> = ids.collect::<Result<_, StoreError>>()?;
        let next = ids.last().filter(|_| ids.len() == limit).cloned();
        // The facts of one owner follow each other.
        ids.dedup();
        Ok(IdPage { ids, next })
    }

    async fn export_conversation(&self, context: &str) -> Result<Option<ConversationRecord>, StoreError> {
        transact(&self.connection, "read", &ExportConversation(context)).await
    }

    async fn export_task(&self, task: &str) -> Result<Option<TaskContent>, StoreError> {
        transact(&self.connection, "read", &ExportTask(task)).await
    }

    async fn export_events(
        &self,
        task: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<EventChunk>, StoreError> {
        let filter = doc! { "task": task, "last": { "$gt": column(after) } };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let options = FindOptions::builder().sort(doc! { "last": 1 }).limit(limit).build();
        let chunk = |found: &Document| {
            let (first, last) = (number(found, "first")?, number(found, "last")?);
            Ok(EventChunk { first, last, json: text(found, "json")?.to_owned() })
        };
        self.connection.find(EVENTS, filter, options).await?.iter().map(chunk).collect()
    }

    async fn unfinished_import(&self) -> Result<Option<ImportProgress>, StoreError> {
        let found = self.connection.find_one(IMPORT, doc! {}).await?;
        found.as_ref().map(progress).transpose()
    }

    async fn begin_import(&self, export: &str) -> Result<(), StoreError> {
        let imports = self.connection.collection(IMPORT).await?;
        let set = doc! { "$set": { "export": export, "records": 0_i64, "skips": false } };
        let written = async { imports.update_one(doc! { "_id": IMPORT }, set).upsert(true).await };
        self.connection.in_time("import", written).await.map(drop)
    }

    async fn import(&self, batch: ImportBatch) -> Result<u64, StoreError> {
        for record in &batch.records {
            check(record)?;
        }
        let added = Import { batch, committed: AtomicU64::new(u64::MAX) };
        transact(&self.connection, "import", &added).await
    }

    async fn finish_import(&self) -> Result<(), StoreError> {
        self.connection.delete_one("import", IMPORT, doc! { "_id": IMPORT }).await
    }
}

fn progress(found: &Document) -> Result<ImportProgress, StoreError> {
    Ok(ImportProgress { export: text(found, "export")?.to_owned(), records: number(found, "records")? })
}

/// Checks that the values fit into documents.
fn check(record: &Record) -> Result<(), StoreError> {
    match record {
        Record::Conversation(ConversationRecord { context, run, lists, .. }) => {
            fits(|| format!("the state of {context:?}"), run.len())?;
            lists.iter().flat_map(|(list, items)| items.iter().map(move |item| (list, item))).try_for_each(
                |(list, item)| {
                    let what = || format!("an item of {list:?} in {context:?}");
                    fits(what, item.len() + list.len() + context.len())
                },
            )
        }
        Record::Task(task) => fits(|| format!("the record of task {:?}", task.id), task.record.len()),
        Record::Events(EventsRecord { chunks, .. }) => chunks
            .iter()
            .try_for_each(|(first, _, json)| fits(|| format!("the events from {first} on"), json.len())),
        Record::Facts(FactsRecord { facts, .. }) => {
            facts.iter().try_for_each(|(id, fact)| fits(|| format!("the fact {id:?}"), fact.json.len()))
        }
    }
}

/// The owner of a conversation, which may be nobody.
fn owner(conversation: Option<&Document>) -> Option<OwnerRecord> {
    let found = conversation.filter(|found| found.contains_key("owner"))?;
    Some(OwnerRecord { principal: optional(found, "owner") })
}

struct ExportConversation<'a>(&'a str);

#[async_trait]
impl Work for ExportConversation<'_> {
    type Output = Option<ConversationRecord>;

    async fn run(&self, from: &mut Transaction) -> Result<Self::Output, Failure> {
        let Some(stored) = read::Conversation(self.0).run(from).await? else { return Ok(None) };
        let found = from.find_one(CONVERSATIONS, doc! { "_id": self.0 }).await?;
        Ok(Some(ConversationRecord {
            context: self.0.to_owned(),
            owner: owner(found.as_ref()),
            touched: found.as_ref().map_or(0, |found| signed(found, "touched")),
            run: stored.run,
            lists: stored.lists,
        }))
    }
}

struct ExportTask<'a>(&'a str);

#[async_trait]
impl Work for ExportTask<'_> {
    type Output = Option<TaskContent>;

    async fn run(&self, from: &mut Transaction) -> Result<Self::Output, Failure> {
        let Some(found) = from.find_one(TASKS, doc! { "_id": self.0 }).await? else { return Ok(None) };
        let context = text(&found, "context")?;
        let conversation = from.find_one(CONVERSATIONS, doc! { "_id": context }).await?;
        let of_task = doc! { "task": self.0 };
        let mut controls = from.find(CONTROLS, of_task.clone()).await?;
        controls.sort_by_key(|control| signed(control, "number"));
        let control = |found: &Document| {
            let message = message(found)?;
            Ok(StoredControl { number: number(found, "number")?, id: message.id, body: message.body })
        };
        let controls = controls.iter().map(control).collect::<Result<_, StoreError>>()?;
        let push = |found: &Document| {
            let (id, body) = (text(found, "push")?.to_owned(), text(found, "body")?.to_owned());
            Ok(StoredPush { id, delivered: number(found, "delivered")?, body })
        };
        let pushes = from.find(PUSHES, of_task.clone()).await?;
        let mut pushes = pushes.iter().map(push).collect::<Result<Vec<_>, StoreError>>()?;
        pushes.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        let entry = |found: &Document| {
            let (id, body) = (text(found, "entry")?.to_owned(), text(found, "body")?.to_owned());
            Ok(StoredOutboxEntry { id, deadline: signed(found, "deadline"), body })
        };
        let outbox = from.find(OUTBOX, of_task).await?;
        let mut outbox = outbox.iter().map(entry).collect::<Result<Vec<_>, StoreError>>()?;
        outbox.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok(Some(TaskContent {
            id: self.0.to_owned(),
            record: text(&found, "record")?.to_owned(),
            owner: owner(conversation.as_ref()),
            token: number(&found, "token")?,
            number: number(&found, "number")?,
            reserved: number(&found, "reserved")?,
            handled: number(&found, "handled")?,
            controls,
            pushes,
            outbox,
        }))
    }
}

/// Adds a batch. The output is the number of conversations, tasks and facts that were there.
struct Import {
    batch: ImportBatch,
    /// The output, once the batch may be committed.
    committed: AtomicU64,
}

#[async_trait]
impl Work for Import {
    type Output = u64;

    async fn run(&self, to: &mut Transaction) -> Result<u64, Failure> {
        let found = to.find_one(IMPORT, doc! { "_id": IMPORT }).await?;
        let (begin, end) = (self.batch.begin, self.batch.begin + self.batch.records.len() as u64);
        let known = found.as_ref().map(progress).transpose()?;
        let known = known.filter(|known| known.export == self.batch.export).map(|known| known.records);
        let before = self.committed.load(Ordering::Relaxed);
        if before != u64::MAX && known == Some(end) {
            // The response to the commit was lost.
            return Ok(before);
        }
        if known != Some(begin) {
            return Err(out_of_step(BACKEND).into());
        }
        let mut skips = found.as_ref().is_some_and(|found| found.get_bool("skips").unwrap_or_default());
        let mut left = 0;
        for record in &self.batch.records {
            match record {
                Record::Conversation(record) => left += u64::from(!add_conversation(to, record).await?),
                Record::Task(task) => {
                    skips = !add_task(to, task).await?;
                    left += u64::from(skips);
                }
                Record::Events(events) if !skips => add_events(to, events).await?,
                Record::Events(_) => {}
                Record::Facts(record) => left += facts::add(to, record).await?,
            }
        }
        let set = doc! { "$set": { "records": column(end), "skips": skips } };
        to.update_one(IMPORT, doc! { "_id": IMPORT }, set).await?;
        self.committed.store(left, Ordering::Relaxed);
        Ok(left)
    }
}

/// `false` if it is there.
async fn add_conversation(to: &mut Transaction, record: &ConversationRecord) -> Result<bool, Failure> {
    let ConversationRecord { context, owner, touched, run, lists } = record;
    let found = to.find_one(CONVERSATIONS, doc! { "_id": context }).await?.unwrap_or_default();
    if found.contains_key("run") {
        return Ok(false);
    }
    let mut set = doc! { "run": run, "touched": *touched };
    if let Some(owner) = owner.as_ref().filter(|_| !found.contains_key("owner")) {
        set.insert("owner", owner.principal.clone());
    }
    to.upsert(CONVERSATIONS, doc! { "_id": context }, doc! { "$set": set }).await?;
    let items = lists.iter().flat_map(|(list, items)| {
        let item = move |(place, item): (u64, &String)| doc! { "context": context, "list": list, "place": column(place), "item": item };
        (0..).zip(items).map(item)
    });
    to.insert(ITEMS, items.collect()).await?;
    Ok(true)
}

/// `false` if it is there.
async fn add_task(to: &mut Transaction, content: &TaskContent) -> Result<bool, Failure> {
    let id = &content.id;
    if to.find_one(TASKS, doc! { "_id": id }).await?.is_some() {
        return Ok(false);
    }
    let record: TaskRecord = decode(|| format!("the record of task {id:?}"), &content.record)?;
    let last_control = content.controls.last().map_or(0, |last| last.number).max(content.handled);
    let task = doc! {
        "_id": id,
        "task": id,
        "context": &record.context,
        "phase": record.phase.as_str(),
        "owner": record.owner.clone(),
        "updated": record.updated.as_microsecond(),
        "record": &content.record,
        "token": column(content.token),
        "number": column(content.number),
        "last": 0_i64,
        "reserved": column(content.reserved),
        "handled": column(content.handled),
        "controls": column(last_control),
        "holder": "",
        "until": 0_i64,
    };
    to.insert(TASKS, vec![task]).await?;
    if let Some(owner) = &content.owner {
        let found = to.find_one(CONVERSATIONS, doc! { "_id": &record.context }).await?;
        if found.is_none_or(|found| !found.contains_key("owner")) {
            let set = doc! { "$set": { "owner": owner.principal.clone() } };
            to.upsert(CONVERSATIONS, doc! { "_id": &record.context }, set).await?;
        }
    }
    let controls = content.controls.iter().map(|StoredControl { number, id: message, body }| {
        doc! { "task": id, "number": column(*number), "message": message, "body": body }
    });
    to.insert(CONTROLS, controls.collect()).await?;
    let pushes = content.pushes.iter().map(|StoredPush { id: push, delivered, body }| {
        doc! { "task": id, "push": push, "delivered": column(*delivered), "body": body }
    });
    to.insert(PUSHES, pushes.collect()).await?;
    let outbox = content.outbox.iter().map(|StoredOutboxEntry { id: entry, deadline, body }| {
        doc! { "task": id, "entry": entry, "deadline": *deadline, "body": body }
    });
    to.insert(OUTBOX, outbox.collect()).await?;
    Ok(true)
}

async fn add_events(to: &mut Transaction, events: &EventsRecord) -> Result<(), Failure> {
    let EventsRecord { task, chunks } = events;
    let chunk = |(first, last, json): &(u64, u64, String)| {
        doc! { "task": task, "first": column(*first), "last": column(*last), "json": json }
    };
    to.insert(EVENTS, chunks.iter().map(chunk).collect()).await?;
    if let Some((_, last, _)) = chunks.last() {
        to.update_one(TASKS, doc! { "_id": task }, doc! { "$set": { "last": column(*last) } }).await?;
    }
    Ok(())
}
