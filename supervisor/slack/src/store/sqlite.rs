//! The database in a file, for one process.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};

use super::{REMEMBERED, Running, Store, StoreError, THREAD_AGE, Thread};

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA busy_timeout = 5000;
    CREATE TABLE IF NOT EXISTS handled (id TEXT PRIMARY KEY, at INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS threads (
        channel TEXT NOT NULL, thread TEXT NOT NULL, context TEXT, last_seen TEXT, skipped INTEGER NOT NULL DEFAULT 0,
        escalated INTEGER NOT NULL DEFAULT 0, waiting TEXT, at INTEGER NOT NULL, PRIMARY KEY (channel, thread));
    CREATE TABLE IF NOT EXISTS answers (user TEXT PRIMARY KEY, task TEXT NOT NULL, at INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS turns (id TEXT PRIMARY KEY, state TEXT NOT NULL);
";

/// The file. A call takes well below a millisecond, so it runs on the caller's thread.
#[derive(Debug)]
pub(super) struct Sqlite {
    connection: Mutex<Connection>,
    /// The running turns, by channel and thread. A process that continues them enters them again.
    running: Mutex<HashMap<(String, String), Running>>,
    /// Whether the turns of the process before were taken.
    has_adopted: AtomicBool,
}

impl Sqlite {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = Connection::open(path)?;
        connection.execute_batch(SCHEMA)?;
        let has_adopted = AtomicBool::new(false);
        let store = Self { connection: Mutex::new(connection), running: Mutex::default(), has_adopted };
        store.delete_old()?;
        Ok(store)
    }

    fn delete_old(&self) -> rusqlite::Result<()> {
        let connection = self.connection();
        connection.execute("DELETE FROM handled WHERE at < ?1", [before(REMEMBERED)])?;
        connection.execute("DELETE FROM answers WHERE at < ?1", [before(REMEMBERED)])?;
        connection.execute("DELETE FROM threads WHERE at < ?1", [before(THREAD_AGE)])?;
        Ok(())
    }

    /// SQLite rolls an interrupted statement back, so a poisoned lock is usable.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running_turns(&self) -> MutexGuard<'_, HashMap<(String, String), Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for Sqlite {
    fn is_shared(&self) -> bool {
        false
    }

    async fn forget_old(&self) -> Result<(), StoreError> {
        Ok(self.delete_old()?)
    }

    async fn is_new(&self, id: &str) -> Result<bool, StoreError> {
        let connection = self.connection();
        Ok(connection.execute("INSERT OR IGNORE INTO handled VALUES (?1, ?2)", params![id, now()])? > 0)
    }

    async fn thread(&self, channel: &str, thread: &str) -> Result<Option<Thread>, StoreError> {
        let connection = self.connection();
        let mut query = connection.prepare_cached(
            "SELECT context, last_seen, skipped, waiting FROM threads WHERE channel = ?1 AND thread = ?2",
        )?;
        let thread = query.query_row([channel, thread], |row| {
            let waiting: Option<String> = row.get(3)?;
            let waiting = waiting.and_then(|text| {
                Some(text.split_once(' ')?).map(|(task, user)| (task.to_owned(), user.to_owned()))
            });
            Ok(Thread { context: row.get(0)?, last_seen: row.get(1)?, skipped: row.get(2)?, waiting })
        });
        Ok(thread.optional()?)
    }

    async fn save_thread(&self, channel: &str, id: &str, thread: &Thread) -> Result<(), StoreError> {
        let waiting = thread.waiting.as_ref().map(|(task, user)| format!("{task} {user}"));
        self.connection().execute(
            "INSERT INTO threads (channel, thread, context, last_seen, skipped, waiting, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT DO UPDATE SET context = ?3, last_seen = ?4, skipped = ?5, waiting = ?6, at = ?7",
            params![channel, id, thread.context, thread.last_seen, thread.skipped, waiting, now()],
        )?;
        Ok(())
    }

    async fn escalate(&self, channel: &str, thread: &str) -> Result<bool, StoreError> {
        let changed = self.connection().execute(
            "INSERT INTO threads (channel, thread, escalated, at) VALUES (?1, ?2, 1, ?3)
             ON CONFLICT DO UPDATE SET escalated = 1 WHERE escalated = 0",
            params![channel, thread, now()],
        )?;
        Ok(changed > 0)
    }

    async fn save_answer(&self, user: &str, task: &str) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO answers VALUES (?1, ?2, ?3)";
        self.connection().execute(sql, params![user, task, now()])?;
        Ok(())
    }

    async fn last_answer(&self, user: &str) -> Result<Option<String>, StoreError> {
        let connection = self.connection();
        let mut query = connection.prepare("SELECT task FROM answers WHERE user = ?1 AND at >= ?2")?;
        Ok(query.query_row(params![user, before(REMEMBERED)], |row| row.get(0)).optional()?)
    }

    async fn set_running(&self, turn: &Running) -> Result<(), StoreError> {
        self.running_turns().insert((turn.channel.clone(), turn.thread.clone()), turn.clone());
        Ok(())
    }

    async fn running_in(&self, channel: &str, thread: &str) -> Result<Option<Running>, StoreError> {
        Ok(self.running_turns().get(&(channel.to_owned(), thread.to_owned())).cloned())
    }

    async fn running(&self) -> Result<Vec<Running>, StoreError> {
        Ok(self.running_turns().values().cloned().collect())
    }

    async fn remove_running(&self, channel: &str, thread: &str, task: &str) -> Result<(), StoreError> {
        self.running_turns().retain(|(own_channel, own_thread), turn| {
            own_channel != channel || own_thread != thread || turn.task != task
        });
        Ok(())
    }

    async fn begin_turn(&self, id: &str, state: &str) -> Result<bool, StoreError> {
        self.save_turn(id, state).await
    }

    async fn save_turn(&self, id: &str, state: &str) -> Result<bool, StoreError> {
        self.connection().execute("INSERT OR REPLACE INTO turns VALUES (?1, ?2)", [id, state])?;
        Ok(true)
    }

    async fn remove_turn(&self, id: &str) -> Result<(), StoreError> {
        self.connection().execute("DELETE FROM turns WHERE id = ?1", [id])?;
        Ok(())
    }

    /// The turns that a restart has interrupted, once.
    async fn adopt_turns(&self) -> Result<Vec<String>, StoreError> {
        if self.has_adopted.swap(true, Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let connection = self.connection();
        let mut query = connection.prepare("SELECT state FROM turns")?;
        let turns = query.query_map([], |row| row.get(0))?;
        Ok(turns.collect::<Result<_, _>>()?)
    }

    async fn release(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    before(Duration::ZERO)
}

/// The time before now, in seconds since 1970.
fn before(age: Duration) -> i64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(age);
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}
