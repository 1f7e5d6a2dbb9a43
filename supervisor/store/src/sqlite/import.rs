//! The rows of an import.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::error::Failure;
use super::rows::{column, put_events, put_owner, put_task, run};
use super::{BACKEND, facts, outbox};
use crate::commit_rules::Owner;
use crate::event_chunk::EventChunk;
use crate::json::decode;
use crate::transfer::{ConversationRecord, ImportBatch, ImportProgress, Record, TaskContent, out_of_step};
use crate::types::{OutboxEntry, TaskRecord};

/// The import that has not ended, and whether the events that follow are left out. The table exists during an import.
pub(super) fn progress(connection: &Connection) -> rusqlite::Result<Option<(ImportProgress, bool)>> {
    const EXISTS: &str = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'import'";
    if !connection.prepare(EXISTS)?.exists([])? {
        return Ok(None);
    }
    let found = |row: &Row<'_>| {
        let records = row.get::<_, i64>(1)?.unsigned_abs();
        Ok((ImportProgress { export: row.get(0)?, records }, row.get(2)?))
    };
    connection.query_row("SELECT export, records, skips FROM import", [], found).optional()
}

/// Runs inside a savepoint of the writer's transaction, as the functions below do.
pub(super) fn begin(connection: &Connection, export: &str) -> Result<(), Failure> {
    const TABLE: &str = "CREATE TABLE IF NOT EXISTS import
        (export TEXT NOT NULL, records INTEGER NOT NULL, skips INTEGER NOT NULL) STRICT; DELETE FROM import";
    connection.execute_batch(TABLE)?;
    Ok(run(connection, "INSERT INTO import VALUES (?1, 0, 0)", [export])?)
}

pub(super) fn finish(connection: &Connection) -> Result<(), Failure> {
    Ok(connection.execute_batch("DROP TABLE IF EXISTS import")?)
}

/// Returns how many conversations, tasks and facts were there.
pub(super) fn import(connection: &Connection, batch: &ImportBatch) -> Result<u64, Failure> {
    let expected = ImportProgress { export: batch.export.clone(), records: batch.begin };
    let Some((_, mut skips)) = progress(connection)?.filter(|(found, _)| *found == expected) else {
        return Err(out_of_step(BACKEND).into());
    };
    let mut left = 0;
    for record in &batch.records {
        match record {
            Record::Conversation(conversation) => {
                left += u64::from(!add_conversation(connection, conversation)?);
            }
            Record::Task(content) => {
                skips = !add_task(connection, content)?;
                left += u64::from(skips);
            }
            Record::Events(events) if !skips => {
                for (first, last, json) in &events.chunks {
                    let chunk = EventChunk { first: *first, last: *last, json: json.clone() };
                    put_events(connection, &events.task, &chunk)?;
                }
            }
            Record::Events(_) => {}
            Record::Facts(record) => {
                for fact in record.records() {
                    left += u64::from(!facts::add(connection, &fact)?);
                }
            }
        }
    }
    let records = column(batch.begin + batch.records.len() as u64);
    run(connection, "UPDATE import SET records = ?1, skips = ?2", params![records, skips])?;
    Ok(left)
}

/// `false` if it is there.
fn add_conversation(connection: &Connection, record: &ConversationRecord) -> Result<bool, Failure> {
    const SQL: &str = "INSERT INTO conversations (context, touched, state) VALUES (?1, ?2, ?3)";
    const ITEM: &str = "INSERT INTO items (context, list, place, item) VALUES (?1, ?2, ?3, ?4)";
    let context = &record.context;
    if connection.prepare_cached("SELECT 1 FROM conversations WHERE context = ?1")?.exists([context])? {
        return Ok(false);
    }
    run(connection, SQL, params![context, record.touched, record.run])?;
    for (list, items) in &record.lists {
        for (place, item) in (0_i64..).zip(items) {
            run(connection, ITEM, params![context, list, place, item])?;
        }
    }
    if let Some(owner) = &record.owner {
        put_owner(connection, context, &Owner(owner.principal.clone()))?;
    }
    Ok(true)
}

/// `false` if it is there.
fn add_task(connection: &Connection, content: &TaskContent) -> Result<bool, Failure> {
    const COUNTERS: &str =
        "UPDATE tasks SET token = ?2, commits = ?3, reserved = ?4, handled = ?5 WHERE id = ?1";
    const CONTROL: &str = "INSERT INTO controls (task, number, id, body) VALUES (?1, ?2, ?3, ?4)";
    const PUSH: &str = "INSERT INTO push_configs (task, id, delivered, body) VALUES (?1, ?2, ?3, ?4)";
    let id = &content.id;
    if connection.prepare_cached("SELECT 1 FROM tasks WHERE id = ?1")?.exists([id])? {
        return Ok(false);
    }
    let record: TaskRecord = decode(|| format!("the record of task {id:?}"), &content.record)?;
    put_task(connection, &record, &content.record)?;
    if let Some(owner) = &content.owner {
        put_owner(connection, &record.context, &Owner(owner.principal.clone()))?;
    }
    let [token, number, reserved, handled] =
        [content.token, content.number, content.reserved, content.handled].map(column);
    run(connection, COUNTERS, params![id, token, number, reserved, handled])?;
    for control in &content.controls {
        run(connection, CONTROL, params![id, column(control.number), control.id, control.body])?;
    }
    for push in &content.pushes {
        run(connection, PUSH, params![id, push.id, column(push.delivered), push.body])?;
    }
    for entry in &content.outbox {
        let deadline = Timestamp::from_microsecond(entry.deadline).unwrap_or_default();
        let entry =
            OutboxEntry { task: id.clone(), id: entry.id.clone(), body: entry.body.clone(), deadline };
        outbox::put(connection, &entry)?;
    }
    Ok(true)
}
