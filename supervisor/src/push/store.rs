//! Stores push configurations with their tasks.

use std::sync::Arc;

use async_trait::async_trait;
use caipe_a2a::ProtocolVersion;
use caipe_a2a::model::TaskPushNotificationConfig;
use caipe_a2a::server::{PushStore, PushStoreError, Registration};
use caipe_store::{LeaseTerm, PushRecord, Store};
use serde::{Deserialize, Serialize};

/// Stores push configurations in a [`Store`], which removes them with their task.
#[derive(Debug, Clone)]
pub struct StoredPushes {
    store: Arc<dyn Store>,
    /// The owner of the claims of this process, and their term.
    term: LeaseTerm,
}

/// The stored form of a push configuration.
#[derive(Serialize, Deserialize)]
struct StoredConfig {
    /// The protocol version of the client, `0.3` or `1.0`.
    version: String,
    config: TaskPushNotificationConfig,
}

impl StoredPushes {
    pub const fn new(store: Arc<dyn Store>, term: LeaseTerm) -> Self {
        Self { store, term }
    }
}

/// The claim of the process that delivers. Its length makes it unique.
fn claim(task: &str, id: &str) -> String {
    format!("push:{}:{task}:{id}", task.len())
}

fn failed(action: &'static str) -> impl Fn(caipe_store::StoreError) -> PushStoreError {
    move |error| PushStoreError { action, reason: error.to_string() }
}

fn record(registration: Registration) -> Result<PushRecord, PushStoreError> {
    let Registration { task, id, version, config, delivered } = registration;
    let body = serde_json::to_string(&StoredConfig { version: version.to_string(), config });
    let body = body.map_err(|error| PushStoreError { action: "encode", reason: error.to_string() })?;
    Ok(PushRecord { task, id, body, delivered: delivered.min(PushRecord::DONE) })
}

/// An unreadable record is skipped with a warning.
fn registration(record: PushRecord) -> Option<Registration> {
    let PushRecord { task, id, body, delivered } = record;
    let body = serde_json::from_str::<StoredConfig>(&body).ok();
    let read = body.and_then(|body| Some((ProtocolVersion::parse(&body.version)?, body.config)));
    let Some((version, config)) = read else {
        tracing::warn!(task, id, "failed to read a push configuration from the store");
        return None;
    };
    Some(Registration { task, id, version, config, delivered })
}

#[async_trait]
impl PushStore for StoredPushes {
    async fn put(&self, registration: Registration) -> Result<(), PushStoreError> {
        self.store.put_push(record(registration)?).await.map_err(failed("keep"))
    }

    async fn of_task(&self, task: &str) -> Result<Vec<Registration>, PushStoreError> {
        let records = self.store.pushes_of(task).await.map_err(failed("read"))?;
        Ok(records.into_iter().filter_map(registration).collect())
    }

    async fn pending(&self) -> Result<Vec<Registration>, PushStoreError> {
        let records = self.store.pushes_pending().await.map_err(failed("read"))?;
        Ok(records.into_iter().filter_map(registration).collect())
    }

    async fn delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), PushStoreError> {
        self.store.push_delivered(task, id, seq.min(PushRecord::DONE)).await.map_err(failed("note"))
    }

    async fn delete(&self, task: &str, id: &str) -> Result<(), PushStoreError> {
        self.store.delete_push(task, id).await.map_err(failed("delete"))
    }

    async fn admit(&self, of: &Registration) -> Result<Option<u64>, PushStoreError> {
        let claimed = self.store.claim(&claim(&of.task, &of.id), &self.term).await;
        if !claimed.map_err(failed("claim"))? {
            return Ok(None);
        }
        // Read once no other process can deliver.
        let stored = self.of_task(&of.task).await?.into_iter().find(|stored| stored.id == of.id);
        let same = stored.filter(|stored| stored.config == of.config && stored.version == of.version);
        if same.is_none() {
            self.release(&of.task, &of.id).await?;
        }
        Ok(same.map(|stored| stored.delivered))
    }

    async fn release(&self, task: &str, id: &str) -> Result<(), PushStoreError> {
        self.store.end_claim(&claim(task, id), &self.term.owner).await.map_err(failed("release"))
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
