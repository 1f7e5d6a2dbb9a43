//! What the bot remembers over restarts: threads, turns, last answers and handled deliveries, in SQLite for one process or in
//! Redis for several ones.

#[cfg(test)]
mod contract_tests;
mod redis;
mod sqlite;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caipe_store::RedisOptions;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};

use crate::settings::Database;
use redis::Redis;
use sqlite::Sqlite;

/// How long a handled delivery and the last answer of a person are remembered. Slack repeats a delivery for at most ten minutes.
const REMEMBERED: Duration = Duration::from_hours(24);
/// How long an idle thread is remembered.
const THREAD_AGE: Duration = Duration::from_hours(90 * 24);
/// How long a process keeps its turns without renewing its lease.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

/// What is known of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Thread {
    /// The A2A context of its conversation.
    pub(crate) context: Option<String>,
    /// The newest message that the agent has seen.
    pub(crate) last_seen: Option<String>,
    /// Whether the bot stayed silent.
    pub(crate) skipped: bool,
    /// The task that waits for an answer, and the person who asked.
    pub(crate) waiting: Option<(String, String)>,
}

/// A running turn whose task is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) channel: String,
    pub(crate) thread: String,
    pub(crate) task: String,
    /// The person who asked, and the time stamp of the message.
    pub(crate) user: String,
    pub(crate) question: String,
}

/// Why the database failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct StoreError(String);

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<caipe_store::StoreError> for StoreError {
    fn from(error: caipe_store::StoreError) -> Self {
        Self(error.to_string())
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

/// The database. A turn has one owner, a process. A process that does not renew its lease loses its turns to another one.
#[async_trait]
pub(crate) trait Store: std::fmt::Debug + Send + Sync {
    /// Whether several processes can use it.
    fn is_shared(&self) -> bool;

    /// Deletes what is too old.
    async fn forget_old(&self) -> Result<(), StoreError>;

    /// Whether a delivery is new; it is not new the second time.
    async fn is_new(&self, id: &str) -> Result<bool, StoreError>;

    async fn thread(&self, channel: &str, thread: &str) -> Result<Option<Thread>, StoreError>;

    async fn save_thread(&self, channel: &str, id: &str, thread: &Thread) -> Result<(), StoreError>;

    /// Marks a thread as escalated. Returns whether it was not before.
    async fn escalate(&self, channel: &str, thread: &str) -> Result<bool, StoreError>;

    /// Saves the task of the last answer in the direct message of a person.
    async fn save_answer(&self, user: &str, task: &str) -> Result<(), StoreError>;

    async fn last_answer(&self, user: &str) -> Result<Option<String>, StoreError>;

    /// Lets people find the running turn of its thread. A later one replaces it.
    async fn set_running(&self, turn: &Running) -> Result<(), StoreError>;

    /// The running turn of a thread.
    async fn running_in(&self, channel: &str, thread: &str) -> Result<Option<Running>, StoreError>;

    /// All running turns, also those of other processes.
    async fn running(&self) -> Result<Vec<Running>, StoreError>;

    /// Removes the running turn of a thread if it has this task.
    async fn remove_running(&self, channel: &str, thread: &str, task: &str) -> Result<(), StoreError>;

    /// Saves a new turn. Returns whether this process owns it.
    async fn begin_turn(&self, id: &str, state: &str) -> Result<bool, StoreError>;

    /// Saves a turn and renews the lease. Returns whether this process still owns the turn.
    async fn save_turn(&self, id: &str, state: &str) -> Result<bool, StoreError>;

    /// Removes a turn, if this process owns it.
    async fn remove_turn(&self, id: &str) -> Result<(), StoreError>;

    /// Renews the lease, and takes the turns of processes that have ended or have lost theirs.
    async fn adopt_turns(&self) -> Result<Vec<String>, StoreError>;

    /// Gives up the lease.
    async fn release(&self) -> Result<(), StoreError>;
}

/// Opens the database of an app, which `app` identifies.
///
/// # Errors
/// If the file cannot be opened, or the URL cannot be used. Redis itself need not be reachable yet.
pub(crate) fn open(database: &Database, app: &str) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match database {
        Database::File(path) => Arc::new(Sqlite::open(path)?),
        Database::Redis { url, certificate_authority } => {
            let (url, certificate_authority) =
                (url.expose_secret().to_owned(), certificate_authority.clone());
            let database = format!("caipe-slack:{app}");
            Arc::new(Redis::open(&RedisOptions { url, database, certificate_authority }, LEASE)?)
        }
    })
}
