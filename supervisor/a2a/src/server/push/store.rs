//! The store of push configurations.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::model::TaskPushNotificationConfig;
use crate::version::ProtocolVersion;

/// A push configuration of a task and the progress of its deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub task: String,
    /// The id of the configuration.
    pub id: String,
    /// The version of the client that registered it, which the notifications have.
    pub version: ProtocolVersion,
    /// The configuration, with both ids.
    pub config: TaskPushNotificationConfig,
    /// The number of the last delivered event of the task's log; [`Registration::DONE`] once nothing is left.
    pub delivered: u64,
}

impl Registration {
    /// Nothing is left to deliver.
    pub const DONE: u64 = i64::MAX.unsigned_abs();
}

/// A failure of the store; for the log, not for clients.
#[derive(Debug, Clone, thiserror::Error)]
#[error("failed to {action} a push configuration: {reason}")]
pub struct PushStoreError {
    /// The failed action, for example `store`.
    pub action: &'static str,
    pub reason: String,
}

/// Stores push configurations.
#[async_trait]
pub trait PushStore: Send + Sync + 'static {
    /// Stores a configuration. Replaces the one of the same task and id.
    async fn put(&self, registration: Registration) -> Result<(), PushStoreError>;

    /// The configurations of a task, by their ids.
    async fn of_task(&self, task: &str) -> Result<Vec<Registration>, PushStoreError>;

    /// All configurations with undelivered notifications.
    async fn pending(&self) -> Result<Vec<Registration>, PushStoreError>;

    /// Marks the events up to `seq` as delivered. Ignores a smaller number than the stored one.
    async fn delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), PushStoreError>;

    /// Removes a configuration, if it exists.
    async fn delete(&self, task: &str, id: &str) -> Result<(), PushStoreError>;

    /// Lets this process deliver for a while, and returns what is delivered. `None` if another process delivers, or if the
    /// stored configuration is gone or another one. The default is for a store that one process at a time uses.
    async fn admit(&self, registration: &Registration) -> Result<Option<u64>, PushStoreError> {
        Ok(Some(registration.delivered))
    }

    /// Lets other processes deliver at once.
    async fn release(&self, task: &str, id: &str) -> Result<(), PushStoreError> {
        let _ = (task, id);
        Ok(())
    }
}

/// Push configurations in memory.
#[derive(Debug, Default)]
pub struct MemoryPushStore {
    registrations: Mutex<BTreeMap<(String, String), Registration>>,
}

impl MemoryPushStore {
    fn registrations(&self) -> MutexGuard<'_, BTreeMap<(String, String), Registration>> {
        self.registrations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl PushStore for MemoryPushStore {
    async fn put(&self, registration: Registration) -> Result<(), PushStoreError> {
        self.registrations().insert((registration.task.clone(), registration.id.clone()), registration);
        Ok(())
    }

    async fn of_task(&self, task: &str) -> Result<Vec<Registration>, PushStoreError> {
        let registrations = self.registrations();
        let from =
            registrations.range((task.to_owned(), String::new())..).map(|(_, registration)| registration);
        Ok(from.take_while(|registration| registration.task == task).cloned().collect())
    }

    async fn pending(&self) -> Result<Vec<Registration>, PushStoreError> {
        let registrations = self.registrations();
        Ok(registrations
            .values()
            .filter(|registration| registration.delivered < Registration::DONE)
            .cloned()
            .collect())
    }

    async fn delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), PushStoreError> {
        if let Some(registration) = self.registrations().get_mut(&(task.to_owned(), id.to_owned())) {
            registration.delivered = registration.delivered.max(seq);
        }
        Ok(())
    }

    async fn delete(&self, task: &str, id: &str) -> Result<(), PushStoreError> {
        self.registrations().remove(&(task.to_owned(), id.to_owned()));
        Ok(())
    }
}
