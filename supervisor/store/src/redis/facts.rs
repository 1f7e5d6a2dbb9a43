//! Facts in Redis.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::encode::Arguments;
use super::error::corrupt;
use super::{RedisStore, scripts};
use crate::error::StoreError;
use crate::facts::{FactChange, FactRecord, FactStore, current};
use crate::json::{decode, encode};

/// Most expired facts of one step; other commands wait for it.
const STEP: u64 = 256;

/// A fact as the value of a hash.
#[derive(Serialize, Deserialize)]
struct Value {
    agent: String,
    /// Times are microseconds since 1970.
    saved: i64,
    expires: Option<i64>,
    json: String,
}

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
        FactChange::Save(FactRecord { owner, id, agent, saved, expires, json }) => {
            // Rounded up, so that the index removes no fact too early.
            let at = expires.map_or_else(String::new, |expires| (expires.as_millisecond() + 1).to_string());
            let (saved, expires) = (saved.as_microsecond(), expires.map(Timestamp::as_microsecond));
            let value = encode(&Value { agent, saved, expires, json })?;
            Arguments::of(["save", &owner, &id, &value, &at])
        }
        FactChange::Remove { owner, id } => Arguments::of(["remove", &owner, &id]),
        FactChange::RemoveAll { owner } => Arguments::of(["remove_all", &owner]),
        FactChange::RemoveExpired(at) => {
            Arguments::of(["expire", &at.as_millisecond().to_string()]).and(STEP)
        }
    })
}

fn record(owner: &str, id: String, json: &str) -> Result<FactRecord, StoreError> {
    let Value { agent, saved, expires, json } = decode(|| format!("the fact {id:?}"), json)?;
    let time = |micros: i64| Timestamp::from_microsecond(micros).unwrap_or_default();
    let (saved, expires) = (time(saved), expires.map(time));
    Ok(FactRecord { owner: owner.to_owned(), id, agent, saved, expires, json })
}
