//! The rows of conversations and tasks. Each function runs inside a savepoint of the writer's transaction.

use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, params};

use super::error::Failure;
use super::outbox;
use crate::commit_rules::{LogPosition, Owner, Refusal, admit, admit_new, changed_task, check};
use crate::control::MAX_CONTROLS;
use crate::conversation::{ConversationChange, ListChange};
use crate::error::StoreError;
use crate::event_chunk::EventChunk;
use crate::json::{encode, sized};
use crate::types::{Commit, Lease, Pruned, Retention, TaskRecord};

/// Most tasks and conversations of one step of a prune; commits wait for it.
const PRUNE_STEP: i64 = 64;

/// A commit whose record is encoded by its caller, not by the one thread that writes.
pub(super) struct PreparedCommit {
    commit: Commit,
    /// The record of the task, as JSON.
    record: String,
    at: Timestamp,
}

impl PreparedCommit {
    /// Checks the parts of a commit by themselves.
    pub(super) fn new(commit: Commit, at: Timestamp) -> Result<Self, StoreError> {
        check(&commit)?;
        let named = |record: &TaskRecord| format!("the record of task {:?}", record.id);
        let encoded = |record: &TaskRecord| sized(|| named(record), encode(record)?);
        let record = commit.task.as_ref().map(encoded).transpose()?.unwrap_or_default();
        Ok(Self { commit, record, at })
    }

    /// The task that the commit changes; empty if there is none.
    pub(super) fn task(&self) -> &str {
        changed_task(&self.commit).unwrap_or_default()
    }
}

/// Writes a commit, unless it was written before.
pub(super) fn commit(connection: &Connection, prepared: &PreparedCommit) -> Result<(), Failure> {
    let PreparedCommit { commit, record: json, at } = prepared;
    let fence = commit.fence.as_ref();
    if let (Some(_), Some(record)) = (&commit.create, &commit.task) {
        let is_known =
            connection.prepare_cached("SELECT 1 FROM tasks WHERE id = ?1")?.exists([&record.id])?;
        admit_new(record, is_known, owner(connection, &record.context)?.as_ref())?;
        put_owner(connection, &record.context, &Owner(record.owner.clone()))?;
    }
    let position = fence.map(|fence| position(connection, &fence.task)).transpose()?.flatten();
    if !admit(commit, position)? {
        return Ok(());
    }
    if let Some(record) = &commit.task {
        put_task(connection, record, json)?;
    }
    if let Some(change) = &commit.conversation {
        change_conversation(connection, &commit.context, change, *at)?;
    }
    if let Some(fence) = fence {
        const SQL: &str = "UPDATE tasks SET commits = ?2, reserved = max(reserved, ?3) WHERE id = ?1";
        run(connection, SQL, params![fence.task, column(fence.number), column(fence.reserved)])?;
        if fence.handled > 0 {
            handle_controls(connection, &fence.task, fence.handled)?;
        }
        for entry in &commit.outbox {
            outbox::put(connection, entry)?;
        }
        for chunk in &commit.events {
            put_events(connection, &fence.task, chunk)?;
        }
    }
    Ok(())
}

/// What is stored about the log of a task, `None` if there is no such task.
fn position(connection: &Connection, task: &str) -> rusqlite::Result<Option<LogPosition>> {
    const SQL: &str = "SELECT token, commits, coalesce((SELECT max(last_seq) FROM events WHERE task = ?1), 0)
        FROM tasks WHERE id = ?1";
    let number = |row: &Row<'_>, column| row.get(column).map(i64::unsigned_abs);
    let position = |row: &Row<'_>| {
        Ok(LogPosition { token: number(row, 0)?, number: number(row, 1)?, last: number(row, 2)? })
    };
    connection.prepare_cached(SQL)?.query_row([task], position).optional()
}

/// Takes the exclusive right to write the log of a task.
pub(super) fn acquire(connection: &Connection, task: &str) -> Result<Lease, Failure> {
    const SQL: &str =
        "UPDATE tasks SET token = token + 1, commits = 0 WHERE id = ?1 RETURNING token, reserved,
            EXISTS (SELECT 1 FROM controls WHERE task = ?1 AND number > handled)";
    let number = |row: &Row<'_>, column| row.get(column).map(i64::unsigned_abs);
    let lease = |row: &Row<'_>| {
        Ok(Lease { token: number(row, 0)?, reserved: number(row, 1)?, has_controls: row.get(2)? })
    };
    let lease = connection.prepare_cached(SQL)?.query_row([task], lease).optional()?;
    lease.ok_or_else(|| Refusal::UnknownTask(task.to_owned()).into())
}

/// `None` if there is no such conversation.
pub(super) fn owner(connection: &Connection, context: &str) -> rusqlite::Result<Option<Owner>> {
    const SQL: &str = "SELECT owner FROM conversation_owners WHERE context = ?1";
    connection.prepare_cached(SQL)?.query_row([context], |row| row.get(0).map(Owner)).optional()
}

pub(super) fn put_owner(
    connection: &Connection,
    context: &str,
    Owner(owner): &Owner,
) -> rusqlite::Result<()> {
    const SQL: &str = "INSERT OR IGNORE INTO conversation_owners (context, owner) VALUES (?1, ?2)";
    run(connection, SQL, params![context, owner])
}

pub(super) fn put_task(connection: &Connection, record: &TaskRecord, json: &str) -> rusqlite::Result<()> {
    const SQL: &str =
        "INSERT INTO tasks (id, context, phase, owner, updated, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (id) DO UPDATE SET context = ?2, phase = ?3, owner = ?4, updated = ?5, record = ?6";
    let updated = record.updated.as_microsecond();
    let (phase, owner) = (record.phase.as_str(), &record.owner);
    run(connection, SQL, params![record.id, record.context, phase, owner, updated, json])
}

pub(super) fn change_conversation(
    connection: &Connection,
    context: &str,
    change: &ConversationChange,
    at: Timestamp,
) -> rusqlite::Result<()> {
    const SQL: &str = "INSERT INTO conversations (context, touched, state) VALUES (?1, ?2, ?3)
        ON CONFLICT (context) DO UPDATE SET touched = ?2, state = ?3";
    const CUT: &str = "DELETE FROM items WHERE context = ?1 AND list = ?2 AND place >= ?3";
    const APPEND: &str = "INSERT INTO items (context, list, place, item) VALUES (?1, ?2, ?3, ?4)";
    run(connection, SQL, params![context, at.as_microsecond(), change.run])?;
    for ListChange { list, keep, append } in &change.lists {
        run(connection, CUT, params![context, list, column(*keep)])?;
        for (place, item) in (*keep..).zip(append) {
            run(connection, APPEND, params![context, list, column(place), item])?;
        }
    }
    Ok(())
}

/// Marks the messages up to this number as handled, and forgets the oldest of the handled ones.
fn handle_controls(connection: &Connection, task: &str, handled: u64) -> rusqlite::Result<()> {
    run(
        connection,
        "UPDATE tasks SET handled = max(handled, ?2) WHERE id = ?1",
        params![task, column(handled)],
    )?;
    let forgotten = handled.saturating_sub(MAX_CONTROLS as u64);
    run(connection, "DELETE FROM controls WHERE task = ?1 AND number <= ?2", params![task, column(forgotten)])
}

pub(super) fn put_events(connection: &Connection, task: &str, chunk: &EventChunk) -> rusqlite::Result<()> {
    const SQL: &str =
        "INSERT INTO events (task, first_seq, last_seq, chunks) VALUES (?1, ?2, ?3, '[' || ?4 || ']')";
    run(connection, SQL, params![task, column(chunk.first), column(chunk.last), chunk.json])
}

/// Proves that the file can be written to.
pub(super) fn probe(connection: &Connection, at: Timestamp) -> Result<(), Failure> {
    const SQL: &str = "INSERT INTO probe (id, at) VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET at = ?1";
    Ok(run(connection, SQL, [at.as_microsecond()])?)
}

/// Removes the next few of the tasks and conversations that are too old.
pub(super) fn prune(connection: &Connection, retention: Retention) -> Result<Pruned, Failure> {
    let mut pruned = Pruned::default();
    if let Some(cutoff) = retention.tasks_before {
        for (task, context) in old_tasks(connection, cutoff)? {
            forget_task(connection, &task)?;
            forget_unused_owner(connection, &context)?;
            pruned.tasks += 1;
        }
    }
    if let Some(cutoff) = retention.conversations_before {
        for context in old_conversations(connection, cutoff)? {
            pruned.tasks += forget_conversation(connection, &context)?;
            pruned.conversations += 1;
        }
    }
    Ok(pruned)
}

fn forget_unused_owner(connection: &Connection, context: &str) -> rusqlite::Result<()> {
    const SQL: &str = "DELETE FROM conversation_owners AS old WHERE context = ?1
        AND NOT EXISTS (SELECT 1 FROM tasks WHERE context = old.context)
        AND NOT EXISTS (SELECT 1 FROM conversations WHERE context = old.context)";
    run(connection, SQL, [context])
}

fn old_tasks(connection: &Connection, cutoff: Timestamp) -> rusqlite::Result<Vec<(String, String)>> {
    const SQL: &str = "SELECT id, context FROM tasks
        WHERE updated < ?1 AND phase IN ('completed', 'failed', 'canceled') LIMIT ?2";
    let mut statement = connection.prepare_cached(SQL)?;
    statement.query_map(params![cutoff.as_microsecond(), PRUNE_STEP], |row| row.try_into())?.collect()
}

fn old_conversations(connection: &Connection, cutoff: Timestamp) -> rusqlite::Result<Vec<String>> {
    const SQL: &str = "SELECT context FROM conversations AS old WHERE touched < ?1
        AND NOT EXISTS (SELECT 1 FROM tasks WHERE context = old.context AND phase IN ('submitted', 'working'))
        LIMIT ?2";
    names(connection.prepare_cached(SQL)?, params![cutoff.as_microsecond(), PRUNE_STEP])
}

fn names(mut statement: CachedStatement<'_>, params: impl Params) -> rusqlite::Result<Vec<String>> {
    statement.query_map(params, |row| row.get(0))?.collect()
}

fn forget_conversation(connection: &Connection, context: &str) -> rusqlite::Result<usize> {
    let tasks = names(connection.prepare_cached("SELECT id FROM tasks WHERE context = ?1")?, [context])?;
    for task in &tasks {
        forget_task(connection, task)?;
    }
    run(connection, "DELETE FROM items WHERE context = ?1", [context])?;
    run(connection, "DELETE FROM conversations WHERE context = ?1", [context])?;
    run(connection, "DELETE FROM conversation_owners WHERE context = ?1", [context])?;
    Ok(tasks.len())
}

fn forget_task(connection: &Connection, task: &str) -> rusqlite::Result<()> {
    run(connection, "DELETE FROM events WHERE task = ?1", [task])?;
    run(connection, "DELETE FROM push_configs WHERE task = ?1", [task])?;
    run(connection, "DELETE FROM controls WHERE task = ?1", [task])?;
    run(connection, "DELETE FROM outbox WHERE task = ?1", [task])?;
    run(connection, "DELETE FROM tasks WHERE id = ?1", [task])
}

pub(super) fn run(connection: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(params).map(drop)
}

/// A number as a column holds it; see [`EventChunk`] for its bound.
pub(super) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
