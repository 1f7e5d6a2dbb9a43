//! The rows of conversations and tasks. Each function runs inside a savepoint of the writer's transaction.

use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, params};

use super::error::Failure;
use crate::prepared_commit::{Refusal, TaskRow, Write};
use crate::types::{Pruned, Retention};

/// Most tasks and conversations of one step of a prune; commits wait for it.
const PRUNE_STEP: i64 = 64;

/// Writes a commit except its events, which the shared log gets afterwards. `unsealed` is the number of the task's last
/// event, if that event is not in the table of the events yet.
pub(super) fn commit(connection: &Connection, write: &Write, unsealed: Option<u64>) -> Result<(), Failure> {
    admit(connection, write, unsealed)?;
    if let Some(task) = &write.task {
        put_task(connection, task)?;
    }
    if let Some(state) = &write.state {
        put_state(connection, write, state)?;
    }
    if let Some(inputs) = &write.appends {
        const SQL: &str = "INSERT INTO appends (context, at, inputs) VALUES (?1, ?2, ?3)";
        run(connection, SQL, params![write.context, write.at.as_microsecond(), inputs])?;
    }
    Ok(())
}

fn admit(connection: &Connection, write: &Write, unsealed: Option<u64>) -> Result<(), Failure> {
    if write.needs_snapshot() && !has_snapshot(connection, &write.context)? {
        return Err(Refusal::NoSnapshot(write.context.clone()).into());
    }
    if let Some(chunk) = &write.events {
        let last = match unsealed {
            None => last_seq(connection, &chunk.task)?,
            known => known,
        };
        chunk.follows(last.or_else(|| write.brings(&chunk.task).then_some(0)))?;
    }
    Ok(())
}

fn has_snapshot(connection: &Connection, context: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM conversations WHERE context = ?1")?.exists([context])
}

/// The number of the last event in a log's rows, 0 if it has none, `None` if there is no such task.
pub(super) fn last_seq(connection: &Connection, task: &str) -> rusqlite::Result<Option<u64>> {
    const SQL: &str =
        "SELECT coalesce((SELECT max(last_seq) FROM events WHERE task = ?1), 0) FROM tasks WHERE id = ?1";
    let found: Option<i64> =
        connection.prepare_cached(SQL)?.query_row([task], |row| row.get(0)).optional()?;
    Ok(found.map(i64::unsigned_abs))
}

fn put_task(connection: &Connection, TaskRow { record, json }: &TaskRow) -> rusqlite::Result<()> {
    const SQL: &str =
        "INSERT INTO tasks (id, context, phase, owner, updated, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (id) DO UPDATE SET context = ?2, phase = ?3, owner = ?4, updated = ?5, record = ?6";
    let updated = record.updated.as_microsecond();
    run(
        connection,
        SQL,
        params![record.id, record.context, record.phase.as_str(), record.owner, updated, json],
    )
}

fn put_state(connection: &Connection, write: &Write, state: &str) -> rusqlite::Result<()> {
    const SQL: &str = "INSERT INTO conversations (context, touched, state) VALUES (?1, ?2, ?3)
        ON CONFLICT (context) DO UPDATE SET touched = ?2, state = ?3";
    run(connection, SQL, params![write.context, write.at.as_microsecond(), state])?;
    run(connection, "DELETE FROM appends WHERE context = ?1", [&write.context])
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
        for task in old_tasks(connection, cutoff)? {
            forget_task(connection, &task)?;
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

fn old_tasks(connection: &Connection, cutoff: Timestamp) -> rusqlite::Result<Vec<String>> {
    const SQL: &str = "SELECT id FROM tasks
        WHERE updated < ?1 AND phase IN ('completed', 'failed', 'canceled') LIMIT ?2";
    names(connection.prepare_cached(SQL)?, params![cutoff.as_microsecond(), PRUNE_STEP])
}

fn old_conversations(connection: &Connection, cutoff: Timestamp) -> rusqlite::Result<Vec<String>> {
    const SQL: &str = "SELECT context FROM conversations AS old WHERE touched < ?1
        AND NOT EXISTS (SELECT 1 FROM appends WHERE context = old.context AND at >= ?1)
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
    run(connection, "DELETE FROM appends WHERE context = ?1", [context])?;
    run(connection, "DELETE FROM conversations WHERE context = ?1", [context])?;
    Ok(tasks.len())
}

fn forget_task(connection: &Connection, task: &str) -> rusqlite::Result<()> {
    run(connection, "DELETE FROM events WHERE task = ?1", [task])?;
    run(connection, "DELETE FROM push_configs WHERE task = ?1", [task])?;
    run(connection, "DELETE FROM tasks WHERE id = ?1", [task])
}

pub(super) fn run(connection: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(params).map(drop)
}

/// A number as a column holds it; see [`Chunk`](crate::prepared_commit::Chunk) for its bound.
pub(super) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
