//! The rows of the control messages.

use rusqlite::{Connection, OptionalExtension, params};

use super::error::Failure;
use super::rows::{column, run};
use crate::commit_rules::Refusal;
use crate::control::{Control, ControlMessage, MAX_CONTROLS};
use crate::error::StoreError;

/// The messages after `after` that are not handled.
pub(super) fn waiting(connection: &Connection, task: &str, after: u64) -> Result<Vec<Control>, Failure> {
    const SQL: &str = "SELECT number, controls.id, body FROM controls JOIN tasks ON tasks.id = task
        WHERE task = ?1 AND number > max(handled, ?2) ORDER BY number";
    let mut statement = connection.prepare_cached(SQL)?;
    let rows = statement.query_map(params![task, column(after)], |row| {
        let number: i64 = row.get(0)?;
        let message = ControlMessage { id: row.get(1)?, body: row.get(2)? };
        Ok(Control { number: number.unsigned_abs(), message })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Runs inside a savepoint of the writer's transaction.
pub(super) fn put(connection: &Connection, task: &str, message: &ControlMessage) -> Result<(), Failure> {
    const STATE: &str =
        "SELECT handled, coalesce((SELECT max(number) FROM controls WHERE task = ?1), handled),
        EXISTS (SELECT 1 FROM controls WHERE task = ?1 AND id = ?2) FROM tasks WHERE id = ?1";
    const PUT: &str = "INSERT INTO controls (task, number, id, body) VALUES (?1, ?2, ?3, ?4)";
    let state =
        connection.prepare_cached(STATE)?.query_row([task, &message.id], |row| row.try_into()).optional()?;
    let Some((handled, last, is_known)): Option<(i64, i64, bool)> = state else {
        return Err(Refusal::UnknownTask(task.to_owned()).into());
    };
    if is_known {
        return Ok(());
    }
    if last - handled >= column(MAX_CONTROLS as u64) {
        return Err(StoreError::MailboxFull { task: task.to_owned() }.into());
    }
    Ok(run(connection, PUT, params![task, last + 1, message.id, message.body])?)
}
