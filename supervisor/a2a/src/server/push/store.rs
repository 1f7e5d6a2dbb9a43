//! Where push configurations are kept.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::model::TaskPushNotificationConfig;
use crate::version::ProtocolVersion;

/// A push configuration of a task, and how far it was served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The task.
    pub task: String,
    /// Its id among those of the task.
    pub id: String,
    /// The version of the client that registered it, in which it is served.
    pub version: ProtocolVersion,
    /// What the client said, with both ids.
    pub config: TaskPushNotificationConfig,
    /// The number of the last event of the task's log that needs no delivery any more;
    /// [`Registration::DONE`] once none does.
    pub delivered: u64,
}

impl Registration {
    /// Nothing is left to be delivered: the end of the task was, or nobody wants it.
    pub const DONE: u64 = i64::MAX.unsigned_abs();
}

/// Why push configurations cannot be kept or read; for the log, not for a peer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("failed to {action} a push configuration: {reason}")]
pub struct PushStoreError {
    /// What was tried, for example `keep`.
    pub action: &'static str,
    /// Why it failed.
    pub reason: String,
}

/// Where push configurations are kept. One process at a time serves what is in it.
#[async_trait]
pub trait PushStore: Send + Sync + 'static {
    /// Keeps a configuration, in place of the one of the same task and id.
    async fn put(&self, registration: Registration) -> Result<(), PushStoreError>;

    /// The configurations of a task, by their ids.
    async fn of_task(&self, task: &str) -> Result<Vec<Registration>, PushStoreError>;

    /// All configurations that are not done.
    async fn pending(&self) -> Result<Vec<Registration>, PushStoreError>;

    /// Notes that nothing up to the event `seq` needs delivery any more. Never goes back.
    async fn delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), PushStoreError>;

    /// Removes a configuration, if it is there.
    async fn delete(&self, task: &str, id: &str) -> Result<(), PushStoreError>;
}

/// Push configurations that are gone with the process.
#[derive(Debug, Default)]
pub struct MemoryPushStore {
    kept: Mutex<BTreeMap<(String, String), Registration>>,
}

impl MemoryPushStore {
    fn kept(&self) -> MutexGuard<'_, BTreeMap<(String, String), Registration>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl PushStore for MemoryPushStore {
    async fn put(&self, registration: Registration) -> Result<(), PushStoreError> {
        self.kept().insert((registration.task.clone(), registration.id.clone()), registration);
        Ok(())
    }

    async fn of_task(&self, task: &str) -> Result<Vec<Registration>, PushStoreError> {
        let kept = self.kept();
        let from = kept.range((task.to_owned(), String::new())..).map(|(_, registration)| registration);
        Ok(from.take_while(|registration| registration.task == task).cloned().collect())
    }

    async fn pending(&self) -> Result<Vec<Registration>, PushStoreError> {
        let kept = self.kept();
        Ok(kept.values().filter(|kept| kept.delivered < Registration::DONE).cloned().collect())
    }

    async fn delivered(&self, task: &str, id: &str, seq: u64) -> Result<(), PushStoreError> {
        if let Some(registration) = self.kept().get_mut(&(task.to_owned(), id.to_owned())) {
            registration.delivered = registration.delivered.max(seq);
        }
        Ok(())
    }

    async fn delete(&self, task: &str, id: &str) -> Result<(), PushStoreError> {
        self.kept().remove(&(task.to_owned(), id.to_owned()));
        Ok(())
    }
}
