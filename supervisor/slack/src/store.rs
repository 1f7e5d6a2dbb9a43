//! What the bot remembers over restarts: threads, running turns, last answers and handled deliveries, in SQLite.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, params};

/// How long a handled delivery and the last answer of a person are remembered, in seconds. Slack repeats a delivery for at
/// most ten minutes.
const REMEMBERED: i64 = 24 * 3600;
/// How long an idle thread is remembered, in seconds.
const THREAD_AGE: i64 = 90 * 24 * 3600;

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

/// What is known of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

/// The database. A call takes well below a millisecond, so it runs on the caller's thread.
#[derive(Debug)]
pub(crate) struct Store {
    connection: Mutex<Connection>,
}

impl Store {
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.execute_batch(SCHEMA)?;
        let store = Self { connection: Mutex::new(connection) };
        store.forget_old()?;
        Ok(store)
    }

    /// Deletes handled deliveries, answers and threads that are too old.
    pub(crate) fn forget_old(&self) -> rusqlite::Result<()> {
        let connection = self.connection();
        connection.execute("DELETE FROM handled WHERE at < ?1", [now().saturating_sub(REMEMBERED)])?;
        connection.execute("DELETE FROM answers WHERE at < ?1", [now().saturating_sub(REMEMBERED)])?;
        connection.execute("DELETE FROM threads WHERE at < ?1", [now().saturating_sub(THREAD_AGE)])?;
        Ok(())
    }

    /// Whether a delivery is new; it is not new the second time.
    pub(crate) fn is_new(&self, id: &str) -> rusqlite::Result<bool> {
        let connection = self.connection();
        Ok(connection.execute("INSERT OR IGNORE INTO handled VALUES (?1, ?2)", params![id, now()])? > 0)
    }

    pub(crate) fn thread(&self, channel: &str, thread: &str) -> rusqlite::Result<Option<Thread>> {
        let connection = self.connection();
        let mut query = connection.prepare_cached(
            "SELECT context, last_seen, skipped, waiting FROM threads WHERE channel = ?1 AND thread = ?2",
        )?;
        query
            .query_row([channel, thread], |row| {
                let waiting: Option<String> = row.get(3)?;
                let waiting = waiting.and_then(|text| {
                    Some(text.split_once(' ')?).map(|(task, user)| (task.to_owned(), user.to_owned()))
                });
                Ok(Thread { context: row.get(0)?, last_seen: row.get(1)?, skipped: row.get(2)?, waiting })
            })
            .optional()
    }

    pub(crate) fn save_thread(&self, channel: &str, id: &str, thread: &Thread) -> rusqlite::Result<()> {
        let waiting = thread.waiting.as_ref().map(|(task, user)| format!("{task} {user}"));
        self.connection()
            .execute(
                "INSERT INTO threads (channel, thread, context, last_seen, skipped, waiting, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT DO UPDATE SET context = ?3, last_seen = ?4, skipped = ?5, waiting = ?6, at = ?7",
                params![channel, id, thread.context, thread.last_seen, thread.skipped, waiting, now()],
            )
            .map(drop)
    }

    /// Marks a thread as escalated. Returns whether it was not before.
    pub(crate) fn escalate(&self, channel: &str, thread: &str) -> rusqlite::Result<bool> {
        self.connection()
            .execute(
                "INSERT INTO threads (channel, thread, escalated, at) VALUES (?1, ?2, 1, ?3)
                 ON CONFLICT DO UPDATE SET escalated = 1 WHERE escalated = 0",
                params![channel, thread, now()],
            )
            .map(|changed| changed > 0)
    }

    /// Saves the task of the last answer in the direct message of a person.
    pub(crate) fn save_answer(&self, user: &str, task: &str) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO answers VALUES (?1, ?2, ?3)";
        self.connection().execute(sql, params![user, task, now()]).map(drop)
    }

    pub(crate) fn last_answer(&self, user: &str) -> rusqlite::Result<Option<String>> {
        let connection = self.connection();
        let mut query = connection.prepare("SELECT task FROM answers WHERE user = ?1 AND at >= ?2")?;
        let oldest = now().saturating_sub(REMEMBERED);
        query.query_row(params![user, oldest], |row| row.get(0)).optional()
    }

    pub(crate) fn save_turn(&self, id: &str, state: &str) -> rusqlite::Result<()> {
        self.connection().execute("INSERT OR REPLACE INTO turns VALUES (?1, ?2)", [id, state]).map(drop)
    }

    pub(crate) fn remove_turn(&self, id: &str) -> rusqlite::Result<()> {
        self.connection().execute("DELETE FROM turns WHERE id = ?1", [id]).map(drop)
    }

    /// The turns that a restart has interrupted.
    pub(crate) fn turns(&self) -> rusqlite::Result<Vec<String>> {
        let connection = self.connection();
        let mut query = connection.prepare("SELECT state FROM turns")?;
        query.query_map([], |row| row.get(0))?.collect()
    }

    /// SQLite rolls an interrupted statement back, so a poisoned lock is usable.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}
