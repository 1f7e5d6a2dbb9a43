//! Leases, the turns of conversations, and messages to owners.

use async_trait::async_trait;
use jiff::Timestamp;
use mongodb::bson::{Document, doc};
use mongodb::options::{FindOptions, ReturnDocument};

use super::BACKEND;
use super::clock::ServerTime;
use super::connection::Connection;
use super::documents::{column, is_under_way, millis, number, optional, record, signed, text};
use super::error::Failure;
use super::schema::{CLAIMS, CONTROLS, CONVERSATIONS, TASKS};
use super::transaction::{Transaction, Work};
use crate::commit_rules::Refusal;
use crate::control::{ControlMessage, MAX_CONTROLS};
use crate::error::StoreError;
use crate::types::{Lease, LeaseTerm, TaskRecord};

/// Takes a lease in one change of one document, which the server carries out completely or not at all.
pub(super) async fn acquire(
    connection: &Connection,
    task: &str,
    LeaseTerm { owner, ttl }: &LeaseTerm,
) -> Result<Lease, StoreError> {
    let ServerTime { earliest, latest } = connection.now().await?;
    let free = doc! { "$or": [{ "holder": "" }, { "holder": owner }, { "until": { "$lte": earliest } }] };
    let filter = doc! { "$and": [{ "_id": task }, free] };
    let update = doc! {
        "$inc": { "token": 1_i64 },
        "$set": { "number": 0_i64, "holder": owner, "until": latest.saturating_add(millis(*ttl)) },
    };
    let tasks = connection.collection(TASKS).await?;
    let taken =
        async { tasks.find_one_and_update(filter, update).return_document(ReturnDocument::After).await };
    match connection.in_time("take over a task", taken).await? {
        Some(task) => lease(&task),
        None => Err(refused(connection, task).await?),
    }
}

fn lease(task: &Document) -> Result<Lease, StoreError> {
    Ok(Lease {
        token: number(task, "token")?,
        reserved: number(task, "reserved")?,
        has_controls: number(task, "controls")? > number(task, "handled")?,
    })
}

/// Why a lease was not given.
async fn refused(connection: &Connection, task: &str) -> Result<StoreError, StoreError> {
    let Some(found) = connection.find_one(TASKS, doc! { "_id": task }).await? else {
        return Ok(Refusal::UnknownTask(task.to_owned()).by(BACKEND));
    };
    Ok(StoreError::LeaseTaken {
        task: task.to_owned(),
        owner: optional(&found, "holder").unwrap_or_default(),
        until: Timestamp::from_millisecond(signed(&found, "until")).unwrap_or_default(),
    })
}

/// Extends a lease, or releases it if there is no time to add. Returns whether the lease was there.
pub(super) async fn renew(
    connection: &Connection,
    task: &str,
    token: u64,
    ttl: Option<std::time::Duration>,
) -> Result<bool, StoreError> {
    let held = doc! { "_id": task, "token": column(token), "holder": { "$ne": "" } };
    let set = if let Some(ttl) = ttl {
        doc! { "until": connection.now().await?.latest.saturating_add(millis(ttl)) }
    } else {
        doc! { "holder": "", "until": 0_i64 }
    };
    let action = if ttl.is_some() { "renew a lease" } else { "release a lease" };
    connection.update_one(action, TASKS, held, doc! { "$set": set }).await
}

pub(super) async fn abandoned(connection: &Connection, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
    let now = connection.now().await?.earliest;
    let filter = doc! { "phase": { "$in": ["submitted", "working"] }, "until": { "$lte": now } };
    let options = FindOptions::builder().limit(i64::try_from(limit).unwrap_or(i64::MAX)).build();
    connection.find(TASKS, filter, options).await?.iter().map(record).collect()
}

/// Gives the turn of a conversation to a task. The output is the other task that has it.
pub(super) struct TakeTurn<'a> {
    pub(super) context: &'a str,
    pub(super) task: &'a str,
    pub(super) now: ServerTime,
}

#[async_trait]
impl Work for TakeTurn<'_> {
    type Output = Option<String>;

    async fn run(&self, to: &mut Transaction) -> Result<Option<String>, Failure> {
        let found = to.find_one(CONVERSATIONS, doc! { "_id": self.context }).await?;
        let other = found.and_then(|found| optional(&found, "turn")).filter(|other| other != self.task);
        if let Some(other) = other
            && let Some(stored) = to.find_one(TASKS, doc! { "_id": &other }).await?
            && (is_under_way(&stored) || signed(&stored, "until") > self.now.earliest)
        {
            return Ok(Some(other));
        }
        // The counter makes two of these conflict, also if one of them changes nothing else.
        let change = doc! { "$set": { "turn": self.task }, "$inc": { "changes": 1_i64 } };
        to.upsert(CONVERSATIONS, doc! { "_id": self.context }, change).await?;
        Ok(None)
    }
}

/// Takes or keeps a claim. The output is whether the owner has it.
pub(super) struct Claim<'a> {
    pub(super) what: &'a str,
    pub(super) term: &'a LeaseTerm,
    pub(super) now: ServerTime,
}

#[async_trait]
impl Work for Claim<'_> {
    type Output = bool;

    async fn run(&self, to: &mut Transaction) -> Result<bool, Failure> {
        let LeaseTerm { owner, ttl } = self.term;
        let is_of_another = |found: &Document| {
            optional(found, "owner").as_ref() != Some(owner) && signed(found, "until") > self.now.earliest
        };
        if to.find_one(CLAIMS, doc! { "_id": self.what }).await?.as_ref().is_some_and(is_of_another) {
            return Ok(false);
        }
        let until = self.now.latest.saturating_add(millis(*ttl));
        let change = doc! { "$set": { "owner": owner, "until": until } };
        to.upsert(CLAIMS, doc! { "_id": self.what }, change).await?;
        Ok(true)
    }
}

pub(super) struct SendControl<'a> {
    pub(super) task: &'a str,
    pub(super) message: &'a ControlMessage,
}

#[async_trait]
impl Work for SendControl<'_> {
    type Output = ();

    async fn run(&self, to: &mut Transaction) -> Result<(), Failure> {
        let Self { task, message } = *self;
        let Some(found) = to.find_one(TASKS, doc! { "_id": task }).await? else {
            return Err(Refusal::UnknownTask(task.to_owned()).into());
        };
        if to.find_one(CONTROLS, doc! { "task": task, "message": &message.id }).await?.is_some() {
            return Ok(());
        }
        let handled = number(&found, "handled")?;
        let last = number(&found, "controls")?.max(handled);
        if last - handled >= MAX_CONTROLS as u64 {
            return Err(StoreError::MailboxFull { task: task.to_owned() }.into());
        }
        let number = column(last + 1);
        to.update_one(TASKS, doc! { "_id": task }, doc! { "$set": { "controls": number } }).await?;
        let control = doc! { "task": task, "number": number, "message": &message.id, "body": &message.body };
        to.insert(CONTROLS, vec![control]).await
    }
}

/// The text of a control message, for a reader.
pub(super) fn message(document: &Document) -> Result<ControlMessage, StoreError> {
    Ok(ControlMessage { id: text(document, "message")?.to_owned(), body: text(document, "body")?.to_owned() })
}
