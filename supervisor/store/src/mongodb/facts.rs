//! Facts in MongoDB.

use async_trait::async_trait;
use jiff::Timestamp;
use mongodb::bson::{Document, doc};
use mongodb::options::FindOptions;

use super::MongodbStore;
use super::documents::{signed, text};
use super::schema::FACTS;
use crate::error::StoreError;
use crate::facts::{FactChange, FactRecord, FactStore, current};

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
        let FactRecord { owner, id, agent, saved, expires, json } = fact;
        let mut set = doc! { "agent": agent, "saved": saved.as_microsecond(), "json": json };
        let mut update = Document::new();
        if let Some(expires) = expires {
            set.insert("expires", expires.as_microsecond());
        } else {
            update.insert("$unset", doc! { "expires": "" });
        }
        update.insert("$set", set);
        self.connection.upsert_one(action, FACTS, doc! { "owner": owner, "fact": id }, update).await?;
        Ok(0)
    }
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
