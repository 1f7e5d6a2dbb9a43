//! Encrypted facts.

use async_trait::async_trait;
use jiff::Timestamp;

use super::EncryptedStore;
use super::values::place_of_fact;
use crate::error::StoreError;
use crate::facts::{FactChange, FactRecord, FactStore};

#[async_trait]
impl FactStore for EncryptedStore {
    async fn change_facts(&self, change: FactChange) -> Result<u64, StoreError> {
        // The limits are those of the values without encryption.
        change.check()?;
        let change = match change {
            FactChange::Save(fact) => {
                let json = self.keys.seal(&place_of_fact(&fact.owner, &fact.agent, &fact.id), &fact.json)?;
                FactChange::Save(FactRecord { json, ..fact })
            }
            other => other,
        };
        self.inner.change_facts(change).await
    }

    async fn facts(&self, owner: &str, now: Timestamp) -> Result<Vec<FactRecord>, StoreError> {
        let open = |mut fact: FactRecord| {
            let sealed = std::mem::take(&mut fact.json);
            fact.json = self.keys.open(&place_of_fact(&fact.owner, &fact.agent, &fact.id), sealed)?;
            Ok(fact)
        };
        self.inner.facts(owner, now).await?.into_iter().map(open).collect()
    }
}
