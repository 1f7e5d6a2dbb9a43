//! Facts in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;

use super::MemoryStore;
use crate::error::StoreError;
use crate::facts::{FactChange, FactRecord, FactStore, current};
use crate::transfer::FactsRecord;

/// By owner and id.
#[derive(Debug, Default)]
pub(super) struct Facts(BTreeMap<String, BTreeMap<String, FactRecord>>);

#[async_trait]
impl FactStore for MemoryStore {
    async fn change_facts(&self, change: FactChange) -> Result<u64, StoreError> {
        change.check()?;
        let removed = self.data().facts.change(change);
        Ok(u64::try_from(removed).unwrap_or(u64::MAX))
    }

    async fn facts(&self, owner: &str, now: Timestamp) -> Result<Vec<FactRecord>, StoreError> {
        let found = self.data().facts.0.get(owner).map(|facts| facts.values().cloned().collect());
        Ok(current(found.unwrap_or_default(), now))
    }
}

impl Facts {
    fn change(&mut self, change: FactChange) -> usize {
        let before = self.count();
        match change {
            FactChange::Save(fact) => {
                self.0.entry(fact.owner.clone()).or_default().insert(fact.id.clone(), fact);
                return 0;
            }
            FactChange::Remove { owner, id } => {
                self.0.entry(owner).or_default().remove(&id);
            }
            FactChange::RemoveAll { owner } => {
                self.0.remove(&owner);
            }
            FactChange::RemoveExpired(at) => {
                for facts in self.0.values_mut() {
                    facts.retain(|_, fact| fact.expires.is_none_or(|expires| expires > at));
                }
            }
        }
        self.0.retain(|_, facts| !facts.is_empty());
        before - self.count()
    }

    /// Those about whom there are facts.
    pub(super) fn owners(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Adds facts, and returns how many were there.
    pub(super) fn add(&mut self, record: &FactsRecord) -> usize {
        let (before, facts) = (self.count(), self.0.entry(record.owner.clone()).or_default());
        for fact in record.records() {
            facts.entry(fact.id.clone()).or_insert(fact);
        }
        before + record.facts.len() - self.count()
    }

    fn count(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }
}
