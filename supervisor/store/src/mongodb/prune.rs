//! Removes tasks and conversations that are too old, each in a transaction of its own.

use async_trait::async_trait;
use jiff::Timestamp;
use mongodb::bson::{Document, doc};
use mongodb::options::FindOptions;

use super::connection::Connection;
use super::documents::{is_under_way, signed, text};
use super::error::Failure;
use super::schema::{CONTROLS, CONVERSATIONS, EVENTS, ITEMS, OUTBOX, PUSHES, TASKS};
use super::transaction::{Transaction, Work, transact};
use crate::error::StoreError;
use crate::types::{Pruned, Retention};

/// Most ids in one response.
const PAGE: i64 = 256;

const ENDED: [&str; 3] = ["completed", "failed", "canceled"];

pub(super) async fn prune(connection: &Connection, retention: Retention) -> Result<Pruned, StoreError> {
    let mut total = Pruned::default();
    if let Some(cutoff) = retention.tasks_before {
        let old = doc! { "phase": { "$in": ENDED.to_vec() }, "updated": { "$lt": cutoff.as_microsecond() } };
        for id in ids(connection, TASKS, &old).await? {
            total.tasks += transact(connection, "prune", &OldTask { id: &id, cutoff }).await?;
        }
    }
    if let Some(cutoff) = retention.conversations_before {
        let old = doc! { "touched": { "$lt": cutoff.as_microsecond() } };
        for context in ids(connection, CONVERSATIONS, &old).await? {
            let removed =
                transact(connection, "prune", &OldConversation { context: &context, cutoff }).await?;
            total.tasks += removed.tasks;
            total.conversations += removed.conversations;
        }
    }
    Ok(total)
}

/// The ids of the documents that match, page after page.
async fn ids(connection: &Connection, name: &str, filter: &Document) -> Result<Vec<String>, StoreError> {
    let mut found: Vec<String> = Vec::new();
    loop {
        let mut query = filter.clone();
        if let Some(last) = found.last() {
            query.insert("_id", doc! { "$gt": last });
        }
        let options =
            FindOptions::builder().sort(doc! { "_id": 1 }).projection(doc! { "_id": 1 }).limit(PAGE).build();
        let page = connection.find(name, query, options).await?;
        for document in &page {
            found.push(text(document, "_id")?.to_owned());
        }
        if page.is_empty() {
            return Ok(found);
        }
    }
}

struct OldTask<'a> {
    id: &'a str,
    cutoff: Timestamp,
}

#[async_trait]
impl Work for OldTask<'_> {
    type Output = usize;

    async fn run(&self, to: &mut Transaction) -> Result<usize, Failure> {
        let Some(found) = to.find_one(TASKS, doc! { "_id": self.id }).await? else { return Ok(0) };
        let has_ended = found.get_str("phase").is_ok_and(|phase| ENDED.contains(&phase));
        if !has_ended || signed(&found, "updated") >= self.cutoff.as_microsecond() {
            return Ok(0);
        }
        let context = text(&found, "context")?;
        forget_task(to, self.id).await?;
        let conversation = to.find_one(CONVERSATIONS, doc! { "_id": context }).await?;
        if conversation.is_some_and(|found| !found.contains_key("run"))
            && to.find_one(TASKS, doc! { "context": context }).await?.is_none()
        {
            to.delete(CONVERSATIONS, doc! { "_id": context }).await?;
        }
        Ok(1)
    }
}

struct OldConversation<'a> {
    context: &'a str,
    cutoff: Timestamp,
}

#[async_trait]
impl Work for OldConversation<'_> {
    type Output = Pruned;

    async fn run(&self, to: &mut Transaction) -> Result<Pruned, Failure> {
        let old = doc! { "_id": self.context, "touched": { "$lt": self.cutoff.as_microsecond() } };
        let tasks = to.find(TASKS, doc! { "context": self.context }).await?;
        if tasks.iter().any(is_under_way) || to.find_one(CONVERSATIONS, old).await?.is_none() {
            return Ok(Pruned::default());
        }
        for task in &tasks {
            forget_task(to, text(task, "_id")?).await?;
        }
        to.delete(ITEMS, doc! { "context": self.context }).await?;
        to.delete(CONVERSATIONS, doc! { "_id": self.context }).await?;
        Ok(Pruned { tasks: tasks.len(), conversations: 1 })
    }
}

async fn forget_task(to: &mut Transaction, id: &str) -> Result<(), Failure> {
    for name in [EVENTS, PUSHES, CONTROLS, OUTBOX] {
        to.delete(name, doc! { "task": id }).await?;
    }
    to.delete(TASKS, doc! { "_id": id }).await
}
