//! The rows of the push configurations.

use rusqlite::{Connection, Params, Row, params};

use super::error::Failure;
use super::rows::{column, run};
use crate::commit_rules::Refusal;
use crate::push::{PushChange, PushRecord};

const COLUMNS: &str = "SELECT task, id, body, delivered FROM push_configs";

pub(super) fn of(connection: &Connection, task: &str) -> Result<Vec<PushRecord>, Failure> {
    select(connection, "WHERE task = ?1 ORDER BY id", [task])
}

pub(super) fn pending(connection: &Connection) -> Result<Vec<PushRecord>, Failure> {
    select(connection, "WHERE delivered < ?1 ORDER BY task, id", [column(PushRecord::DONE)])
}

fn select(connection: &Connection, rest: &str, params: impl Params) -> Result<Vec<PushRecord>, Failure> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} {rest}"))?;
    let rows = statement.query_map(params, record)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn record(row: &Row<'_>) -> rusqlite::Result<PushRecord> {
    let delivered: i64 = row.get(3)?;
    Ok(PushRecord {
        task: row.get(0)?,
        id: row.get(1)?,
        body: row.get(2)?,
        delivered: delivered.unsigned_abs(),
    })
}

/// Runs inside a savepoint of the writer's transaction.
pub(super) fn change(connection: &Connection, change: &PushChange) -> Result<(), Failure> {
    match change {
        PushChange::Put(push) => put(connection, push),
        PushChange::Delivered { task, id, seq } => {
            const SQL: &str =
                "UPDATE push_configs SET delivered = max(delivered, ?3) WHERE task = ?1 AND id = ?2";
            Ok(run(connection, SQL, params![task, id, column(*seq)])?)
        }
        PushChange::Delete { task, id } => {
            const SQL: &str = "DELETE FROM push_configs WHERE task = ?1 AND id = ?2";
            Ok(run(connection, SQL, [task, id])?)
        }
    }
}

fn put(connection: &Connection, push: &PushRecord) -> Result<(), Failure> {
    const SQL: &str = "INSERT INTO push_configs (task, id, delivered, body) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (task, id) DO UPDATE SET delivered = ?3, body = ?4";
    if !connection.prepare_cached("SELECT 1 FROM tasks WHERE id = ?1")?.exists([&push.task])? {
        return Err(Refusal::UnknownTask(push.task.clone()).into());
    }
    Ok(run(connection, SQL, params![push.task, push.id, column(push.delivered), push.body])?)
}
