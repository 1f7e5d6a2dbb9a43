//! The rows of the outbox.

use jiff::Timestamp;
use rusqlite::{Connection, Params, params};

use super::error::Failure;
use crate::types::OutboxEntry;

pub(super) fn all(connection: &Connection) -> Result<Vec<OutboxEntry>, Failure> {
    select(connection, "ORDER BY task, id", [])
}

pub(super) fn of(connection: &Connection, task: &str) -> Result<Vec<OutboxEntry>, Failure> {
    select(connection, "WHERE task = ?1 ORDER BY id", [task])
}

fn select(connection: &Connection, rest: &str, params: impl Params) -> Result<Vec<OutboxEntry>, Failure> {
    let sql = format!("SELECT task, id, body, deadline FROM outbox {rest}");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params, |row| {
        let deadline = Timestamp::from_microsecond(row.get(3)?).unwrap_or_default();
        Ok(OutboxEntry { task: row.get(0)?, id: row.get(1)?, body: row.get(2)?, deadline })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn put(connection: &Connection, entry: &OutboxEntry) -> rusqlite::Result<()> {
    const SQL: &str = "INSERT INTO outbox (task, id, deadline, body) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (task, id) DO UPDATE SET deadline = ?3, body = ?4";
    let deadline = entry.deadline.as_microsecond();
    connection.prepare_cached(SQL)?.execute(params![entry.task, entry.id, deadline, entry.body]).map(drop)
}

pub(super) fn settle(connection: &Connection, task: &str, id: &str) -> rusqlite::Result<()> {
    const SQL: &str = "DELETE FROM outbox WHERE task = ?1 AND id = ?2";
    connection.prepare_cached(SQL)?.execute([task, id]).map(drop)
}
