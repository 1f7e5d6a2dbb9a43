//! Facts in Redis.

use async_trait::async_trait;
use jiff::Timestamp;

use super::encode::Arguments;
use super::error::corrupt;
use super::{RedisStore, scripts};
use crate::error::StoreError;
use crate::facts::{FactChange, FactRecord, FactStore, StoredFact, current};
use crate::json::{decode, encode};

/// Most expired facts of one step; other commands wait for it.
const STEP: u64 = 256;

#[async_trait]
impl FactStore for RedisStore {
    async fn change_facts(&self, change: FactChange) -> Result<u64, StoreError> {
        change.check()?;
        let action = change.action();
        let is_stepwise = matches!(change, FactChange::RemoveExpired(_));
        let arguments = arguments(change)?;
        let mut total = 0;
        loop {
            let removed = self.write(action, &scripts::FACTS, arguments.clone()).await?.pop();
            let removed = removed.and_then(|number| number.parse::<u64>().ok());
            let removed = removed.ok_or_else(|| corrupt("the number of removed facts"))?;
            total += removed;
            if !is_stepwise || removed < STEP {
                return Ok(total);
            }
        }
    }

    async fn facts(&self, owner: &str, now: Timestamp) -> Result<Vec<FactRecord>, StoreError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.connection.key(&format!("f:{owner}")));
        let found: Vec<(String, String)> = self.connection.query("read", &command).await?;
        let facts: Result<_, _> = found.into_iter().map(|(id, json)| record(owner, id, &json)).collect();
        Ok(current(facts?, now))
    }
}

fn arguments(change: FactChange) -> Result<Arguments, StoreError> {
    Ok(match change {
        FactChange::Save(fact) => {
            let (owner, id) = (fact.owner.clone(), fact.id.clone());
            let [value, at] = encoded(&fact.into())?;
            Arguments::of(["save", &owner, &id, &value, &at])
        }
        FactChange::Remove { owner, id } => Arguments::of(["remove", &owner, &id]),
        FactChange::RemoveAll { owner } => Arguments::of(["remove_all", &owner]),
        FactChange::RemoveExpired(at) => {
            Arguments::of(["expire", &at.as_millisecond().to_string()]).and(STEP)
        }
    })
}

/// The value of a hash, and the milliseconds at which the fact expires, empty for never.
pub(super) fn encoded(fact: &StoredFact) -> Result<[String; 2], StoreError> {
    // Rounded up, so that the index removes no fact too early.
    let at = fact.expires.map(|micros| (micros.div_euclid(1000) + 1).to_string());
    Ok([encode(fact)?, at.unwrap_or_default()])
}

fn record(owner: &str, id: String, json: &str) -> Result<FactRecord, StoreError> {
    let stored: StoredFact = decode(|| format!("the fact {id:?}"), json)?;
    Ok(stored.into_record(owner, id))
}
