//! Writes commits, each as one transaction.

use async_trait::async_trait;
use jiff::Timestamp;
use mongodb::bson::{Bson, Document, doc};

use super::documents::{column, fits, millis, number, optional, position};
use super::error::Failure;
use super::schema::{CONTROLS, CONVERSATIONS, EVENTS, ITEMS, OUTBOX, TASKS};
use super::transaction::{Transaction, Work};
use crate::commit_rules::{Owner, admit, admit_new, check};
use crate::control::MAX_CONTROLS;
use crate::conversation::{ConversationChange, ListChange};
use crate::error::StoreError;
use crate::json::encode;
use crate::types::{Commit, Fence, LeaseTerm, TaskRecord};
use crate::unique::unique;

/// A commit that was checked by itself, with its record as JSON.
pub(super) struct PreparedCommit {
    commit: Commit,
    record: String,
    at: Timestamp,
    /// The time of the server at which the term of a new task begins, in milliseconds.
    pub(super) begins: i64,
    /// Tells a new task of this commit from one of another commit, when this one is sent again.
    nonce: String,
}

impl PreparedCommit {
    pub(super) fn new(commit: Commit, at: Timestamp) -> Result<Self, StoreError> {
        check(&commit)?;
        let record = commit.task.as_ref().map(encode).transpose()?.unwrap_or_default();
        let task = || commit.task.as_ref().map(|record| record.id.as_str()).unwrap_or_default();
        fits(|| format!("the record of task {:?}", task()), record.len())?;
        for chunk in &commit.events {
            fits(|| format!("the events from {} on", chunk.first), chunk.json.len())?;
        }
        if let Some(change) = &commit.conversation {
            fits(|| format!("the state of {:?}", commit.context), change.run.len())?;
            for (list, item) in
                change.lists.iter().flat_map(|list| list.append.iter().map(move |item| (list, item)))
            {
                let what = || format!("an item of {:?} in {:?}", list.list, commit.context);
                fits(what, item.len() + list.list.len() + commit.context.len())?;
            }
        }
        Ok(Self { commit, record, at, begins: 0, nonce: unique() })
    }

    pub(super) const fn creates(&self) -> bool {
        self.commit.create.is_some()
    }
}

#[async_trait]
impl Work for PreparedCommit {
    type Output = ();

    async fn run(&self, to: &mut Transaction) -> Result<(), Failure> {
        let Self { commit, .. } = self;
        if let (Some(_), Some(record)) = (&commit.create, &commit.task)
            && !self.admit_created(to, record).await?
        {
            return Ok(());
        }
        let stored = match &commit.fence {
            Some(fence) => to.find_one(TASKS, doc! { "_id": &fence.task }).await?,
            None => None,
        };
        let position = stored.as_ref().map(position).transpose()?;
        if !admit(commit, position)? {
            return Ok(());
        }
        if let Some(record) = &commit.task {
            self.put_task(to, record).await?;
            let is_known =
                stored.as_ref().is_some_and(|stored| stored.get_str("_id").ok() == Some(&*record.id));
            if !is_known {
                self.enter_conversation(to, record).await?;
            }
        }
        if let Some(change) = &commit.conversation {
            change_conversation(to, &commit.context, change, self.at).await?;
        }
        if let Some(fence) = &commit.fence {
            put_fenced(to, commit, fence, stored.unwrap_or_default()).await?;
        }
        Ok(())
    }
}

impl PreparedCommit {
    /// Whether the new task is to be written: `false` if this commit has written it before.
    async fn admit_created(&self, to: &mut Transaction, record: &TaskRecord) -> Result<bool, Failure> {
        let known = to.find_one(TASKS, doc! { "_id": &record.id }).await?;
        if known.as_ref().is_some_and(|known| known.get_str("nonce").ok() == Some(&*self.nonce)) {
            return Ok(false);
        }
        let conversation = to.find_one(CONVERSATIONS, doc! { "_id": &record.context }).await?;
        let conversation = conversation.filter(|found| found.contains_key("owner"));
        let owner = conversation.map(|found| Owner(optional(&found, "owner")));
        admit_new(record, known.is_some(), owner.as_ref())?;
        Ok(true)
    }

    async fn put_task(&self, to: &mut Transaction, record: &TaskRecord) -> Result<(), Failure> {
        let mut set = doc! {
            "task": &record.id,
            "context": &record.context,
            "phase": record.phase.as_str(),
            "owner": record.owner.clone(),
            "updated": record.updated.as_microsecond(),
            "record": &self.record,
        };
        let mut of_new = doc! { "token": 0_i64, "number": 0_i64, "last": 0_i64 };
        if let Some(LeaseTerm { owner, ttl }) = &self.commit.create {
            set.extend(doc! {
                "holder": owner, "until": self.begins.saturating_add(millis(*ttl)), "nonce": &self.nonce,
            });
        } else {
            of_new.extend(doc! { "holder": "", "until": 0_i64 });
        }
        to.upsert(TASKS, doc! { "_id": &record.id }, doc! { "$set": set, "$setOnInsert": of_new }).await
    }

    /// The first task of a conversation decides its owner, and has the turn. The counter makes this transaction conflict with one
    /// that removes the conversation.
    async fn enter_conversation(&self, to: &mut Transaction, record: &TaskRecord) -> Result<(), Failure> {
        let filter = doc! { "_id": &record.context };
        let found = to.find_one(CONVERSATIONS, filter.clone()).await?.unwrap_or_default();
        let mut change = doc! { "$inc": { "changes": 1_i64 } };
        let mut set = Document::new();
        if !found.contains_key("owner") {
            set.insert("owner", record.owner.clone());
        }
        if self.creates() && !found.contains_key("turn") {
            set.insert("turn", &record.id);
        }
        if !set.is_empty() {
            change.insert("$set", set);
        }
        to.upsert(CONVERSATIONS, filter, change).await
    }
}

async fn change_conversation(
    to: &mut Transaction,
    context: &str,
    change: &ConversationChange,
    at: Timestamp,
) -> Result<(), Failure> {
    let set = doc! { "run": &change.run, "touched": at.as_microsecond() };
    to.upsert(CONVERSATIONS, doc! { "_id": context }, doc! { "$set": set }).await?;
    let mut items = Vec::new();
    for ListChange { list, keep, append } in &change.lists {
        to.delete(ITEMS, doc! { "context": context, "list": list, "place": { "$gte": column(*keep) } })
            .await?;
        let places = (*keep..).map(column);
        items.extend(
            places
                .zip(append)
                .map(|(place, item)| doc! { "context": context, "list": list, "place": place, "item": item }),
        );
    }
    to.insert(ITEMS, items).await
}

/// Writes what needs the lease of the task.
async fn put_fenced(
    to: &mut Transaction,
    commit: &Commit,
    fence: &Fence,
    stored: Document,
) -> Result<(), Failure> {
    let task = &fence.task;
    let last = commit.events.last().map_or(number(&stored, "last")?, |chunk| chunk.last);
    let handled = fence.handled.max(number(&stored, "handled")?);
    let mut set = doc! {
        "number": column(fence.number),
        "last": column(last),
        "reserved": column(fence.reserved.max(number(&stored, "reserved")?)),
        "handled": column(handled),
    };
    if fence.release {
        set.extend(doc! { "holder": "", "until": 0_i64 });
    }
    to.update_one(TASKS, doc! { "_id": task }, doc! { "$set": set }).await?;
    let events = commit.events.iter().map(|chunk| {
        doc! { "task": task, "first": column(chunk.first), "last": column(chunk.last), "json": &chunk.json }
    });
    to.insert(EVENTS, events.collect()).await?;
    for entry in &commit.outbox {
        let set = doc! { "deadline": entry.deadline.as_microsecond(), "body": &entry.body };
        to.upsert(OUTBOX, doc! { "task": task, "entry": &entry.id }, doc! { "$set": set }).await?;
    }
    // The ids of the last handled messages are remembered.
    let forgotten = handled.saturating_sub(MAX_CONTROLS as u64);
    if fence.handled > 0 && forgotten > 0 {
        let old = doc! { "task": task, "number": { "$lte": Bson::Int64(column(forgotten)) } };
        to.delete(CONTROLS, old).await?;
    }
    Ok(())
}
