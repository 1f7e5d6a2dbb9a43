//! The rows of the facts.

use jiff::Timestamp;
use rusqlite::{Connection, Params, Row, params};

use super::error::Failure;
use crate::facts::{FactChange, FactRecord};

pub(super) fn of(connection: &Connection, owner: &str) -> Result<Vec<FactRecord>, Failure> {
    const SQL: &str = "SELECT owner, id, agent, saved, expires, json FROM facts WHERE owner = ?1";
    let mut statement = connection.prepare_cached(SQL)?;
    let rows = statement.query_map([owner], record)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn record(row: &Row<'_>) -> rusqlite::Result<FactRecord> {
    let time = |micros: i64| Timestamp::from_microsecond(micros).unwrap_or_default();
    Ok(FactRecord {
        owner: row.get(0)?,
        id: row.get(1)?,
        agent: row.get(2)?,
        saved: time(row.get(3)?),
        expires: row.get::<_, Option<i64>>(4)?.map(time),
        json: row.get(5)?,
    })
}

/// Runs inside a savepoint of the writer's transaction. Returns how many facts it removed.
pub(super) fn change(connection: &Connection, change: &FactChange) -> rusqlite::Result<u64> {
    match change {
        FactChange::Save(fact) => save(connection, fact).map(|_| 0),
        FactChange::Remove { owner, id } => {
            run(connection, "DELETE FROM facts WHERE owner = ?1 AND id = ?2", [owner, id])
        }
        FactChange::RemoveAll { owner } => run(connection, "DELETE FROM facts WHERE owner = ?1", [owner]),
        FactChange::RemoveExpired(at) => {
            run(connection, "DELETE FROM facts WHERE expires <= ?1", [at.as_microsecond()])
        }
    }
}

/// Adds a fact, unless it is there; then returns `false`.
pub(super) fn add(connection: &Connection, fact: &FactRecord) -> rusqlite::Result<bool> {
    const EXISTS: &str = "SELECT 1 FROM facts WHERE owner = ?1 AND id = ?2";
    let is_new = !connection.prepare_cached(EXISTS)?.exists([&fact.owner, &fact.id])?;
    Ok(is_new && save(connection, fact)? > 0)
}

fn save(connection: &Connection, fact: &FactRecord) -> rusqlite::Result<u64> {
    const SQL: &str =
        "INSERT INTO facts (owner, id, agent, saved, expires, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (owner, id) DO UPDATE SET agent = ?3, saved = ?4, expires = ?5, json = ?6";
    let FactRecord { owner, id, agent, saved, expires, json } = fact;
    let expires = expires.map(Timestamp::as_microsecond);
    run(connection, SQL, params![owner, id, agent, saved.as_microsecond(), expires, json])
}

fn run(connection: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<u64> {
    let changed = connection.prepare_cached(sql)?.execute(params)?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}
