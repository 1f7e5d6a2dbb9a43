//! Facts that agents remember about the people that they work for.

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::commit_rules::check_id;
use crate::error::StoreError;
use crate::json::limit_of;

/// Most bytes of a fact as JSON.
pub const MAX_FACT_BYTES: usize = 16 << 10;

/// A fact as a store holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct FactRecord {
    /// The person, at most [`MAX_ID_BYTES`](crate::MAX_ID_BYTES). The facts of another owner are never read.
    pub owner: String,
    /// Unique within the owner.
    pub id: String,
    /// The agent that saved it.
    pub agent: String,
    pub saved: Timestamp,
    /// From this time on, the fact does not exist.
    pub expires: Option<Timestamp>,
    /// The fact as JSON, at most [`MAX_FACT_BYTES`]. Stores do not parse it.
    pub json: String,
}

/// Without the fact, which is about a person.
impl fmt::Debug for FactRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, agent, saved, expires, owner: _, json: _ } = self;
        f.debug_struct("FactRecord")
            .field("id", id)
            .field("agent", agent)
            .field("saved", saved)
            .field("expires", expires)
            .finish_non_exhaustive()
    }
}

/// A fact without its owner and its id, as the value of a hash in Redis and in an export.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredFact {
    pub(crate) agent: String,
    /// Times are microseconds since 1970.
    pub(crate) saved: i64,
    pub(crate) expires: Option<i64>,
    pub(crate) json: String,
}

impl From<FactRecord> for StoredFact {
    fn from(FactRecord { agent, saved, expires, json, owner: _, id: _ }: FactRecord) -> Self {
        let (saved, expires) = (saved.as_microsecond(), expires.map(Timestamp::as_microsecond));
        Self { agent, saved, expires, json }
    }
}

impl StoredFact {
    pub(crate) fn into_record(self, owner: &str, id: String) -> FactRecord {
        let Self { agent, saved, expires, json } = self;
        let time = |micros: i64| Timestamp::from_microsecond(micros).unwrap_or_default();
        let (saved, expires) = (time(saved), expires.map(time));
        FactRecord { owner: owner.to_owned(), id, agent, saved, expires, json }
    }
}

/// A change of the facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactChange {
    /// Stores a fact; replaces the one with the same owner and id.
    Save(FactRecord),
    Remove {
        owner: String,
        id: String,
    },
    RemoveAll {
        owner: String,
    },
    /// Removes the facts of all owners that have expired at this time.
    RemoveExpired(Timestamp),
}

/// Stores facts. Every [`Store`](crate::Store) is one, and passes the same suite, `tests/contract`.
#[async_trait]
pub trait FactStore: Send + Sync + fmt::Debug {
    /// Changes facts, and returns how many it removed, once the change is durable.
    ///
    /// Fails if the owner, the id or the agent of a new fact is empty or too long, or if it is too large.
    async fn change_facts(&self, change: FactChange) -> Result<u64, StoreError>;

    /// The facts of an owner that have not expired at `now`, the newest first; of two of the same microsecond, the smaller id. The
    /// caller bounds how many there are.
    async fn facts(&self, owner: &str, now: Timestamp) -> Result<Vec<FactRecord>, StoreError>;
}

impl FactChange {
    /// Checks the sizes.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let Self::Save(fact) = self else { return Ok(()) };
        check_id("owner of a fact", &fact.owner)?;
        check_id("fact", &fact.id)?;
        check_id("agent of a fact", &fact.agent)?;
        match fact.json.len() {
            bytes if bytes <= limit_of(&fact.json, MAX_FACT_BYTES) => Ok(()),
            bytes => Err(StoreError::TooLarge {
                what: format!("the fact {:?}", fact.id),
                bytes,
                limit: MAX_FACT_BYTES,
            }),
        }
    }

    /// What failed, for an error.
    pub(crate) const fn action(&self) -> &'static str {
        match self {
            Self::Save(_) => "save a fact",
            Self::Remove { .. } | Self::RemoveAll { .. } => "remove facts",
            Self::RemoveExpired(_) => "remove expired facts",
        }
    }
}

/// The facts that have not expired, in the order of [`FactStore::facts`].
pub(crate) fn current(mut facts: Vec<FactRecord>, now: Timestamp) -> Vec<FactRecord> {
    facts.retain(|fact| fact.expires.is_none_or(|expires| expires > now));
    facts.sort_unstable_by(|a, b| {
        b.saved.as_microsecond().cmp(&a.saved.as_microsecond()).then_with(|| a.id.cmp(&b.id))
    });
    facts
}
