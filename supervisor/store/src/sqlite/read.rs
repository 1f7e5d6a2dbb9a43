//! Queries, on connections of their own and on threads that may block.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use super::error::{Failure, unavailable};
use super::open;
use super::rows::column;
use crate::conversation::StoredConversation;
use crate::error::StoreError;
use crate::event_chunk::{self, LoggedEvent};
use crate::json::decode;
use crate::types::{TaskFilter, TaskPhase, TaskRecord};

/// Most reads at once. More would only compete for the same disk.
const READERS: u32 = 4;

const UNDER_WAY: &str = "SELECT id FROM tasks WHERE phase IN (?1, ?2)";

/// The connections, opened when first needed.
pub(super) struct Readers {
    path: PathBuf,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        let permits = Arc::new(Semaphore::new(READERS as usize));
        Self { path: path.to_owned(), permits, idle: Mutex::default() }
    }

    /// Runs a query on a thread that may block. Dropping the future does not stop the query.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        query: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let closed = |_| unavailable(&self.path, "it is closed");
        let permit = self.permits.clone().acquire_owned().await.map_err(closed)?;
        let readers = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            let outcome = readers.with_connection(query).map_err(|failure| failure.at(&readers.path, "read"));
            drop(permit);
            outcome
        });
        work.await.map_err(|error| unavailable(&self.path, format!("a read did not end: {error}")))?
    }

    /// A connection that failed is not used again.
    fn with_connection<T>(
        &self,
        query: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let pooled = idle().pop();
        let mut connection = pooled.map_or_else(|| open::for_reading(&self.path), Ok)?;
        let found = query(&mut connection)?;
        idle().push(connection);
        Ok(found)
    }

    /// Waits for the reads that are under way. Later reads fail.
    pub(super) async fn close(&self) {
        let all = self.permits.acquire_many(READERS).await;
        self.permits.close();
        drop(all);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

pub(super) fn conversation(
    connection: &mut Connection,
    context: &str,
) -> Result<Option<StoredConversation>, Failure> {
    // Both queries read the same snapshot of the file.
    let transaction = connection.transaction()?;
    let run: Option<String> = transaction
        .prepare_cached("SELECT state FROM conversations WHERE context = ?1")?
        .query_row([context], |row| row.get(0))
        .optional()?;
    let Some(run) = run else { return Ok(None) };
    let mut stored = StoredConversation { run, ..StoredConversation::default() };
    let mut statement =
        transaction.prepare_cached("SELECT list, item FROM items WHERE context = ?1 ORDER BY list, place")?;
    let mut rows = statement.query([context])?;
    while let Some(row) = rows.next()? {
        stored.lists.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(Some(stored))
}

pub(super) fn task(connection: &Connection, id: &str) -> Result<Option<TaskRecord>, Failure> {
    let mut statement = connection.prepare_cached("SELECT id, record FROM tasks WHERE id = ?1")?;
    let mut rows = statement.query([id])?;
    rows.next()?.map(record).transpose()
}

/// The ids of the tasks under way.
pub(super) fn under_way(connection: &Connection) -> Result<Vec<String>, Failure> {
    let phases = [TaskPhase::Submitted, TaskPhase::Working].map(TaskPhase::as_str);
    let mut statement = connection.prepare_cached(UNDER_WAY)?;
    let found = statement.query_map(phases, |row| row.get(0))?.collect::<Result<_, _>>();
    Ok(found?)
}

/// Reads what the health check wrote.
pub(super) fn probe(connection: &mut Connection) -> Result<(), Failure> {
    connection.prepare_cached("SELECT at FROM probe")?.query_row([], |row| row.get::<_, i64>(0))?;
    Ok(())
}

pub(super) fn tasks(connection: &Connection, filter: &TaskFilter) -> Result<Vec<TaskRecord>, Failure> {
    let (sql, values) = select(filter);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(record(row)?);
    }
    Ok(records)
}

pub(super) fn count_tasks(connection: &Connection, filter: &TaskFilter) -> Result<u64, Failure> {
    let (conditions, values) = conditions(filter);
    let sql = format!("SELECT count(*) FROM tasks {}", filtered(&conditions));
    let count: i64 =
        connection.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// The query for a page. Values are bound, never spliced.
fn select(filter: &TaskFilter) -> (String, Vec<Value>) {
    let (mut conditions, mut values) = conditions(filter);
    if let Some(place) = &filter.beyond {
        conditions.push("(updated, id) < (?, ?)".to_owned());
        values.extend([Value::from(place.updated.as_microsecond()), Value::from(place.id.clone())]);
    }
    // To SQLite a negative limit is none.
    values.push(Value::from(if filter.limit == 0 { -1 } else { column(filter.limit as u64) }));
    let filtered = filtered(&conditions);
    (format!("SELECT id, record FROM tasks {filtered} ORDER BY updated DESC, id DESC LIMIT ?"), values)
}

/// The conditions of a filter except its place and its limit.
fn conditions(filter: &TaskFilter) -> (Vec<String>, Vec<Value>) {
    let mut conditions = Vec::new();
    let mut values = Vec::new();
    // A conversation has fewer tasks than a principal or a phase. The sign keeps SQLite from using their indexes.
    let sign = if filter.context.is_some() { "+" } else { "" };
    let owner = format!("{sign}owner = ?");
    for (column, wanted) in [("context = ?", &filter.context), (&owner, &filter.owner)] {
        if let Some(wanted) = wanted {
            conditions.push(column.to_owned());
            values.push(Value::from(wanted.clone()));
        }
    }
    if !filter.phases.is_empty() {
        conditions.push(format!("{sign}phase IN ({})", vec!["?"; filter.phases.len()].join(", ")));
        values.extend(filter.phases.iter().map(|phase: &TaskPhase| Value::from(phase.as_str().to_owned())));
    }
    if let Some(since) = filter.since {
        conditions.push("updated >= ?".to_owned());
        values.push(Value::from(since.as_microsecond()));
    }
    (conditions, values)
}

fn filtered(conditions: &[String]) -> String {
    if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) }
}

fn record(row: &Row<'_>) -> Result<TaskRecord, Failure> {
    let id = text(row, 0)?;
    Ok(decode(|| format!("the record of task {id:?}"), text(row, 1)?)?)
}

/// The events of a task after `after`.
pub(super) fn events(
    connection: &Connection,
    task: &str,
    after: u64,
    limit: usize,
) -> Result<Vec<LoggedEvent>, Failure> {
    const SQL: &str =
        "SELECT first_seq, chunks FROM events WHERE task = ?1 AND last_seq > ?2 ORDER BY last_seq LIMIT ?3";
    let mut statement = connection.prepare_cached(SQL)?;
    // Each row holds at least one event.
    let mut rows = statement.query(params![task, column(after), column(limit as u64)])?;
    let mut events = Vec::new();
    while events.len() < limit
        && let Some(row) = rows.next()?
    {
        let first: i64 = row.get(0)?;
        let what = || format!("the events of task {task:?} from {first} on");
        let chunks: Vec<&RawValue> = decode(what, text(row, 1)?)?;
        let mut first = first.unsigned_abs();
        for chunk in chunks {
            first = event_chunk::read(task, (first, chunk.get()), &mut events, (after, limit))?;
        }
    }
    Ok(events)
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a str> {
    Ok(row.get_ref(column)?.as_str()?)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::sqlite::schema;
    use crate::types::TaskPlace;

    /// How SQLite runs a statement, in one line.
    fn plan(connection: &Connection, sql: &str, values: Vec<Value>) -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        steps.collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    }

    /// A list that scanned all tasks, or sorted those of a conversation, would slow down with the store.
    #[test]
    fn lists_are_read_from_an_index() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection, Path::new("caipe.db")).unwrap();
        let (context, owner) = (Some("c".to_owned()), Some("ann".to_owned()));
        let beyond = Some(TaskPlace { updated: Timestamp::UNIX_EPOCH, id: "t".into() });
        let phases = vec![TaskPhase::InputRequired];
        let all = TaskFilter { limit: 50, ..TaskFilter::default() };
        for (filter, index) in [
            (TaskFilter { context: context.clone(), ..all.clone() }, "tasks_by_context (context=?"),
            (
                TaskFilter { context: context.clone(), beyond: beyond.clone(), ..all.clone() },
                "tasks_by_context (context=?",
            ),
            (TaskFilter { context, owner: owner.clone(), ..all.clone() }, "tasks_by_context (context=?"),
            (
                TaskFilter { context: Some("c".to_owned()), phases: phases.clone(), ..all.clone() },
                "tasks_by_context (context=?",
            ),
            (TaskFilter { owner, beyond, ..all.clone() }, "tasks_by_owner (owner=?"),
            (TaskFilter { phases, ..all.clone() }, "tasks_by_phase (phase=?"),
            (all, "tasks_by_change"),
        ] {
            let (sql, values) = select(&filter);
            let plan = plan(&connection, &sql, values);
            assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{filter:?}: {plan}");
        }
        for (sql, index) in [
            ("SELECT * FROM controls WHERE task = ?1 AND number > ?2", "PRIMARY KEY (task=? AND number>?)"),
            ("SELECT owner FROM conversation_owners WHERE context = ?1", "PRIMARY KEY (context=?)"),
            (UNDER_WAY, "COVERING INDEX tasks_by_phase (phase=?"),
        ] {
            let plan = plan(&connection, sql, vec![Value::from("t".to_owned()); sql.matches('?').count()]);
            assert!(plan.contains(index), "{sql}: {plan}");
        }
    }
}
