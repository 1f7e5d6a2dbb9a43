//! Copies of a file.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::value::RawValue;

use super::error::Failure;
use super::rows::column;
use super::writer::Work;
use super::{SqliteStore, import, outbox, push, read};
use crate::error::StoreError;
use crate::event_chunk::{self, EventChunk};
use crate::json::decode;
use crate::transfer::{
    ConversationRecord, IdPage, ImportBatch, ImportProgress, RecordKind, StoredControl, TaskContent, Transfer,
};

#[async_trait]
impl Transfer for SqliteStore {
    async fn list_ids(
        &self,
        kind: RecordKind,
        after: Option<&str>,
        limit: usize,
    ) -> Result<IdPage, StoreError> {
        let after = after.unwrap_or_default().to_owned();
        self.readers.read(move |connection| list(connection, kind, &after, limit)).await
    }

    async fn export_conversation(&self, context: &str) -> Result<Option<ConversationRecord>, StoreError> {
        let context = context.to_owned();
        self.readers.read(move |connection| conversation(connection, &context)).await
    }

    async fn export_task(&self, task: &str) -> Result<Option<TaskContent>, StoreError> {
        let task = task.to_owned();
        self.readers.read(move |connection| stored_task(connection, &task)).await
    }

    async fn export_events(
        &self,
        task: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<EventChunk>, StoreError> {
        let task = task.to_owned();
        self.readers.read(move |connection| chunks(connection, &task, after, limit)).await
    }

    async fn unfinished_import(&self) -> Result<Option<ImportProgress>, StoreError> {
        let found = self.readers.read(|connection| Ok(import::progress(connection)?)).await?;
        Ok(found.map(|(progress, _)| progress))
    }

    async fn begin_import(&self, export: &str) -> Result<(), StoreError> {
        self.write(Work::BeginImport(export.to_owned())).await.map(drop)
    }

    async fn import(&self, batch: ImportBatch) -> Result<u64, StoreError> {
        Ok(self.write(Work::Import(Box::new(batch))).await?.left)
    }

    async fn finish_import(&self) -> Result<(), StoreError> {
        self.write(Work::FinishImport).await.map(drop)
    }
}

fn list(connection: &Connection, kind: RecordKind, after: &str, limit: usize) -> Result<IdPage, Failure> {
    let sql = match kind {
        RecordKind::Conversation => {
            "SELECT context FROM conversations WHERE context > ?1 ORDER BY context LIMIT ?2"
        }
        RecordKind::Task => "SELECT id FROM tasks WHERE id > ?1 ORDER BY id LIMIT ?2",
        RecordKind::FactOwner => "SELECT DISTINCT owner FROM facts WHERE owner > ?1 ORDER BY owner LIMIT ?2",
    };
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![after, column(limit as u64)], |row| row.get(0))?;
    let ids = rows.collect::<Result<Vec<String>, _>>()?;
    let next = ids.last().filter(|_| ids.len() == limit).cloned();
    Ok(IdPage { ids, next })
}

fn conversation(connection: &mut Connection, context: &str) -> Result<Option<ConversationRecord>, Failure> {
    let Some(stored) = read::conversation(connection, context)? else { return Ok(None) };
    let touched = connection
        .prepare_cached("SELECT touched FROM conversations WHERE context = ?1")?
        .query_row([context], |row| row.get(0))?;
    let owner = super::rows::owner(connection, context)?.map(Into::into);
    let context = context.to_owned();
    Ok(Some(ConversationRecord { context, owner, touched, run: stored.run, lists: stored.lists }))
}

fn stored_task(connection: &Connection, task: &str) -> Result<Option<TaskContent>, Failure> {
    const SQL: &str = "SELECT context, token, commits, reserved, handled, record FROM tasks WHERE id = ?1";
    const CONTROLS: &str = "SELECT number, id, body FROM controls WHERE task = ?1 ORDER BY number";
    let number = |row: &Row<'_>, column| row.get(column).map(i64::unsigned_abs);
    let read = |row: &Row<'_>| {
        let found = TaskContent {
            id: task.to_owned(),
            token: number(row, 1)?,
            number: number(row, 2)?,
            reserved: number(row, 3)?,
            handled: number(row, 4)?,
            record: row.get(5)?,
            ..TaskContent::default()
        };
        Ok((row.get::<_, String>(0)?, found))
    };
    let found = connection.prepare_cached(SQL)?.query_row([task], read).optional()?;
    let Some((context, mut found)) = found else { return Ok(None) };
    found.owner = super::rows::owner(connection, &context)?.map(Into::into);
    let mut statement = connection.prepare_cached(CONTROLS)?;
    let controls = statement.query_map([task], |row| {
        Ok(StoredControl { number: number(row, 0)?, id: row.get(1)?, body: row.get(2)? })
    })?;
    found.controls = controls.collect::<Result<_, _>>()?;
    found.pushes = push::of(connection, task)?.into_iter().map(Into::into).collect();
    found.outbox = outbox::of(connection, task)?.into_iter().map(Into::into).collect();
    Ok(Some(found))
}

/// Reads whole rows, each of which may have several chunks.
fn chunks(connection: &Connection, task: &str, after: u64, limit: usize) -> Result<Vec<EventChunk>, Failure> {
    const SQL: &str = "SELECT first_seq, last_seq, chunks FROM events
        WHERE task = ?1 AND last_seq > ?2 ORDER BY last_seq LIMIT ?3";
    let mut statement = connection.prepare_cached(SQL)?;
    let mut rows = statement.query(params![task, column(after), column(limit as u64)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let [mut first, last] = [row.get::<_, i64>(0)?, row.get(1)?].map(i64::unsigned_abs);
        let what = || format!("the events of task {task:?} from {first} on");
        let stored: String = row.get(2)?;
        let chunks: Vec<&RawValue> = decode(what, &stored)?;
        if let [chunk] = chunks.as_slice() {
            found.push(EventChunk { first, last, json: chunk.get().to_owned() });
            continue;
        }
        for chunk in chunks {
            let next = event_chunk::read(task, (first, chunk.get()), &mut Vec::new(), (u64::MAX, 0))?;
            if next > after.saturating_add(1) {
                found.push(EventChunk { first, last: next - 1, json: chunk.get().to_owned() });
            }
            first = next;
        }
    }
    Ok(found)
}
