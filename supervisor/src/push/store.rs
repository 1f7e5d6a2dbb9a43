//! Stores push configurations with their tasks.

use std::sync::Arc;

use async_trait::async_trait;
use caipe_a2a::ProtocolVersion;
use caipe_a2a::model::TaskPushNotificationConfig;
use caipe_a2a::server::{PushStore, PushStoreError, Registration};
use caipe_store::{PushRecord, Store};
use serde::{Deserialize, Serialize};

/// Stores push configurations in a [`Store`], which removes them with their task.
#[derive(Debug, Clone)]
pub struct StoredPushes(Arc<dyn Store>);

/// The stored form of a push configuration.
#[derive(Serialize, Deserialize)]
struct StoredConfig {
    /// The protocol version of the client, `0.3` or `1.0`.
    version: String,
    config: TaskPushNotificationConfig,
}

impl StoredPushes {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
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
        self.0.put_push(record(registration)?).await.map_err(failed("keep"))
    }

    async fn of_task(&self, task: &str) -> Result<Vec<Registration>, PushStoreError> {
        let records = self.0.pushes_of(task).await.map_err(failed("read"))?;
        Ok(records.into_iter().filter_map(registration).collect())
    }

    async fn pending(&self) -> Result<Vec<Registration>, PushStoreError> {
        let records = self.0.pushes_pending().await.map_err(failed("read"))?;
        Ok(records.into_iter().filter_map(registration).collect())
    }

    async fn delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), PushStoreError> {
        self.0.push_delivered(task, id, seq.min(PushRecord::DONE)).await.map_err(failed("note"))
    }

    async fn delete(&self, task: &str, id: &str) -> Result<(), PushStoreError> {
        self.0.delete_push(task, id).await.map_err(failed("delete"))
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
