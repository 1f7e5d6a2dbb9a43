//! Queries.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use mongodb::bson::{Document, doc};
use mongodb::options::FindOptions;

use super::connection::Connection;
use super::documents::{column, number, optional, record, signed, text};
use super::error::Failure;
use super::leases::message;
use super::schema::{CONTROLS, CONVERSATIONS, EVENTS, ITEMS, OUTBOX, TASKS};
use super::transaction::{Transaction, Work};
use crate::control::Control;
use crate::conversation::StoredConversation;
use crate::error::StoreError;
use crate::event_chunk::{self, LoggedEvent};
use crate::types::{OutboxEntry, TaskFilter, TaskRecord};

/// Most chunks of events in one response.
const PAGE: usize = 256;

pub(super) async fn task(connection: &Connection, id: &str) -> Result<Option<TaskRecord>, StoreError> {
    connection.find_one(TASKS, doc! { "_id": id }).await?.as_ref().map(record).transpose()
}

/// Reads a conversation as it was at one moment.
pub(super) struct Conversation<'a>(pub(super) &'a str);

#[async_trait]
impl Work for Conversation<'_> {
    type Output = Option<StoredConversation>;

    async fn run(&self, from: &mut Transaction) -> Result<Option<StoredConversation>, Failure> {
        let found = from.find_one(CONVERSATIONS, doc! { "_id": self.0 }).await?;
        let Some(run) = found.and_then(|found| optional(&found, "run")) else { return Ok(None) };
        let mut items = from.find(ITEMS, doc! { "context": self.0 }).await?;
        items.sort_by_key(|item| signed(item, "place"));
        let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for item in &items {
            let list = lists.entry(text(item, "list")?.to_owned()).or_default();
            list.push(text(item, "item")?.to_owned());
        }
        Ok(Some(StoredConversation { run, lists }))
    }
}

/// The tasks of a filter, without its place and its limit.
fn matching(filter: &TaskFilter) -> Document {
    let mut query = Document::new();
    if let Some(context) = &filter.context {
        query.insert("context", context);
    }
    if let Some(owner) = &filter.owner {
        query.insert("owner", owner);
    }
    if !filter.phases.is_empty() {
        let phases: Vec<_> = filter.phases.iter().map(|phase| phase.as_str()).collect();
        query.insert("phase", doc! { "$in": phases });
    }
    if let Some(since) = filter.since {
        query.insert("updated", doc! { "$gte": since.as_microsecond() });
    }
    query
}

pub(super) async fn tasks(
    connection: &Connection,
    filter: &TaskFilter,
) -> Result<Vec<TaskRecord>, StoreError> {
    let mut query = matching(filter);
    if let Some(place) = &filter.beyond {
        let updated = place.updated.as_microsecond();
        let below = doc! { "$or": [
            { "updated": { "$lt": updated } },
            { "updated": updated, "task": { "$lt": &place.id } },
        ] };
        query = doc! { "$and": [query, below] };
    }
    let options = FindOptions::builder()
        .sort(doc! { "updated": -1, "task": -1 })
        .projection(doc! { "record": 1 })
        .limit(i64::try_from(filter.limit).unwrap_or(i64::MAX))
        .build();
    connection.find(TASKS, query, options).await?.iter().map(record).collect()
}

pub(super) async fn count_tasks(connection: &Connection, filter: &TaskFilter) -> Result<u64, StoreError> {
    let tasks = connection.collection(TASKS).await?;
    let query = matching(filter);
    connection.in_time("read", async { tasks.count_documents(query).await }).await
}

pub(super) async fn events(
    connection: &Connection,
    task: &str,
    after: u64,
    limit: usize,
) -> Result<Vec<LoggedEvent>, StoreError> {
    let (mut events, mut from) = (Vec::new(), Some(after));
    while let Some(above) = from.filter(|_| events.len() < limit) {
        // Each chunk has at least one event.
        let size = (limit - events.len()).min(PAGE);
        let filter = doc! { "task": task, "last": { "$gt": column(above) } };
        let options = FindOptions::builder()
            .sort(doc! { "last": 1 })
            .limit(i64::try_from(size).unwrap_or(i64::MAX))
            .build();
        let page = connection.find(EVENTS, filter, options).await?;
        from = None;
        for chunk in &page {
            let (first, json) = (number(chunk, "first")?, text(chunk, "json")?);
            event_chunk::read(task, (first, json), &mut events, (after, limit))?;
            from = Some(number(chunk, "last")?).filter(|_| page.len() == size);
        }
    }
    Ok(events)
}

pub(super) async fn controls(
    connection: &Connection,
    task: &str,
    after: u64,
) -> Result<Vec<Control>, StoreError> {
    let Some(found) = connection.find_one(TASKS, doc! { "_id": task }).await? else { return Ok(Vec::new()) };
    let above = after.max(number(&found, "handled")?);
    let filter = doc! { "task": task, "number": { "$gt": column(above) } };
    let order = FindOptions::builder().sort(doc! { "number": 1 }).build();
    let found = connection.find(CONTROLS, filter, order).await?;
    let control =
        |found: &Document| Ok(Control { number: number(found, "number")?, message: message(found)? });
    found.iter().map(control).collect()
}

pub(super) async fn outbox(connection: &Connection) -> Result<Vec<OutboxEntry>, StoreError> {
    let found = connection.find(OUTBOX, doc! {}, FindOptions::default()).await?;
    let entry = |found: &Document| {
        let text = |field| text(found, field).map(str::to_owned);
        let deadline = Timestamp::from_microsecond(signed(found, "deadline")).unwrap_or_default();
        Ok(OutboxEntry { task: text("task")?, id: text("entry")?, body: text("body")?, deadline })
    };
    let mut entries = found.iter().map(entry).collect::<Result<Vec<_>, StoreError>>()?;
    entries.sort_unstable_by(|a, b| (&a.task, &a.id).cmp(&(&b.task, &b.id)));
    Ok(entries)
}
