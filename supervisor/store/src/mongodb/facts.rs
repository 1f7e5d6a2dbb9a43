//! Facts in MongoDB.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;
use mongodb::bson::{Document, doc};
use mongodb::options::FindOptions;

use super::MongodbStore;
use super::documents::{signed, text};
use super::error::Failure;
use super::schema::FACTS;
use super::transaction::Transaction;
use crate::error::StoreError;
use crate::facts::{FactChange, FactRecord, FactStore, current};
use crate::transfer::FactsRecord;

#[async_trait]
impl FactStore for MongodbStore {
    async fn change_facts(&self, change: FactChange) -> Result<u64, StoreError> {
        change.check()?;
        let action = change.action();
        let removed = match change {
            FactChange::Save(fact) => return self.save_fact(action, fact).await,
            FactChange::Remove { owner, id } => doc! { "owner": owner, "fact": id },
            FactChange::RemoveAll { owner } => doc! { "owner": owner },
            // A fact that does not expire has no such field.
            FactChange::RemoveExpired(at) => doc! { "expires": { "$lte": at.as_microsecond() } },
        };
        self.connection.delete_many(action, FACTS, removed).await
    }

    async fn facts(&self, owner: &str, now: Timestamp) -> Result<Vec<FactRecord>, StoreError> {
        let found = self.connection.find(FACTS, doc! { "owner": owner }, FindOptions::default()).await?;
        let facts: Result<_, _> = found.iter().map(record).collect();
        Ok(current(facts?, now))
    }
}

impl MongodbStore {
    async fn save_fact(&self, action: &'static str, fact: FactRecord) -> Result<u64, StoreError> {
        let mut update = doc! { "$set": content(&fact) };
        if fact.expires.is_none() {
            update.insert("$unset", doc! { "expires": "" });
        }
        let FactRecord { owner, id, .. } = fact;
        self.connection.upsert_one(action, FACTS, doc! { "owner": owner, "fact": id }, update).await?;
        Ok(0)
    }
}

/// Adds facts, and returns how many were there.
pub(super) async fn add(to: &mut Transaction, record: &FactsRecord) -> Result<u64, Failure> {
    let found = to.find(FACTS, doc! { "owner": &record.owner }).await?;
    let known = found.iter().map(|fact| text(fact, "fact")).collect::<Result<HashSet<_>, _>>()?;
    let new = record.records().filter(|fact| !known.contains(&*fact.id)).map(|fact| {
        let mut document = doc! { "owner": &fact.owner, "fact": &fact.id };
        document.extend(content(&fact));
        document
    });
    let new: Vec<Document> = new.collect();
    let left = record.facts.len() - new.len();
    to.insert(FACTS, new).await?;
    Ok(left as u64)
}

/// The fields of a fact without its owner and its id.
fn content(fact: &FactRecord) -> Document {
    let FactRecord { agent, saved, expires, json, owner: _, id: _ } = fact;
    let mut content = doc! { "agent": agent, "saved": saved.as_microsecond(), "json": json };
    if let Some(expires) = expires {
        content.insert("expires", expires.as_microsecond());
    }
    content
}

fn record(document: &Document) -> Result<FactRecord, StoreError> {
    let text = |field| text(document, field).map(str::to_owned);
    let time = |field| Timestamp::from_microsecond(signed(document, field)).unwrap_or_default();
    let expires = document.contains_key("expires").then(|| time("expires"));
    Ok(FactRecord {
        owner: text("owner")?,
        id: text("fact")?,
        agent: text("agent")?,
        saved: time("saved"),
        expires,
        json: text("json")?,
    })
}
