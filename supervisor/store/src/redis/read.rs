//! Queries.

use std::collections::BTreeMap;

use jiff::Timestamp;
use redis::{FromRedisValue as _, Value};

use super::connection::Connection;
use super::encode::{Arguments, place_of};
use super::error::corrupt;
use super::scripts;
use crate::control::{Control, ControlMessage};
use crate::conversation::StoredConversation;
use crate::error::StoreError;
use crate::event_chunk::{self, LoggedEvent};
use crate::json::decode;
use crate::push::PushRecord;
use crate::types::{OutboxEntry, TaskFilter, TaskPhase, TaskRecord};

/// Most tasks, and most chunks of events, in one response.
const PAGE: usize = 256;

pub(super) const PHASES: [TaskPhase; 6] = [
    TaskPhase::Submitted,
    TaskPhase::Working,
    TaskPhase::InputRequired,
    TaskPhase::Completed,
    TaskPhase::Failed,
    TaskPhase::Canceled,
];

pub(super) async fn task(connection: &Connection, id: &str) -> Result<Option<TaskRecord>, StoreError> {
    let mut command = redis::cmd("HGET");
    command.arg(connection.key(&format!("t:{id}"))).arg("record");
    let json: Option<String> = connection.query("read", &command).await?;
    json.map(|json| decode(|| format!("the record of task {id:?}"), &json)).transpose()
}

pub(super) async fn abandoned(connection: &Connection, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX).to_string();
    let found: Vec<(String, String)> =
        connection.call("read", &scripts::ABANDONED, Arguments::of([&*limit])).await?;
    let record = |(id, json): (String, String)| decode(|| format!("the record of task {id:?}"), &json);
    found.into_iter().map(record).collect()
}

pub(super) async fn conversation(
    connection: &Connection,
    context: &str,
) -> Result<Option<StoredConversation>, StoreError> {
    let found: Vec<Value> = connection.call("read", &scripts::CONVERSATION, Arguments::of([context])).await?;
    let invalid = |_| corrupt(&format!("conversation {context:?}"));
    let mut values = found.into_iter();
    let Some(run) = values.next() else { return Ok(None) };
    let run = String::from_redis_value(run).map_err(invalid)?;
    let mut lists = BTreeMap::new();
    while let (Some(list), Some(items)) = (values.next(), values.next()) {
        let list = String::from_redis_value(list).map_err(invalid)?;
        lists.insert(list, Vec::<String>::from_redis_value(items).map_err(invalid)?);
    }
    Ok(Some(StoredConversation { run, lists }))
}

/// The index that a filter reads.
fn scope(filter: &TaskFilter) -> String {
    match (&filter.context, &filter.owner) {
        (Some(context), _) => format!("c:{context}"),
        (None, Some(owner)) => format!("o:{owner}"),
        (None, None) => "a".to_owned(),
    }
}

fn phases(filter: &TaskFilter) -> Vec<&'static str> {
    let wanted = PHASES.iter().filter(|phase| filter.phases.is_empty() || filter.phases.contains(phase));
    wanted.map(|phase| phase.as_str()).collect()
}

fn lower(filter: &TaskFilter) -> String {
    filter.since.map_or_else(|| "-".to_owned(), |since| format!("[{}", place_of(since)))
}

/// Reads page after page, and from an index of a conversation only the tasks of the owner.
pub(super) async fn tasks(
    connection: &Connection,
    filter: &TaskFilter,
) -> Result<Vec<TaskRecord>, StoreError> {
    let limit = if filter.limit == 0 { usize::MAX } else { filter.limit };
    let place = filter.beyond.as_ref();
    let mut upper =
        place.map_or_else(|| "+".to_owned(), |place| format!("({}{}", place_of(place.updated), place.id));
    let mut records = Vec::new();
    while records.len() < limit {
        let size = limit.saturating_sub(records.len()).min(PAGE);
        let bounds = [scope(filter), upper, lower(filter), size.to_string()];
        let arguments = Arguments::of(bounds.iter().map(String::as_str).chain(phases(filter)));
        let page: Vec<(String, String)> = connection.call("read", &scripts::TASKS, arguments).await?;
        let Some((last, _)) = page.last() else { break };
        upper = format!("({last}");
        for (member, json) in &page {
            let what = || format!("the record of task {:?}", member.get(16..).unwrap_or_default());
            let record: TaskRecord = decode(what, json)?;
            if filter.owner.is_none() || filter.owner == record.owner {
                records.push(record);
            }
        }
        if page.len() < size {
            break;
        }
    }
    Ok(records)
}

pub(super) async fn count_tasks(connection: &Connection, filter: &TaskFilter) -> Result<u64, StoreError> {
    if filter.context.is_some() && filter.owner.is_some() {
        let all = TaskFilter { beyond: None, limit: 0, ..filter.clone() };
        return Ok(tasks(connection, &all).await?.len() as u64);
    }
    let mut count = 0;
    for phase in phases(filter) {
        let mut command = redis::cmd("ZLEXCOUNT");
        command.arg(connection.key(&format!("x:{phase}:{}", scope(filter)))).arg(lower(filter)).arg("+");
        count += connection.query::<u64>("read", &command).await?;
    }
    Ok(count)
}

/// A stream's entry: its id, and its fields with their values.
type Entry = (String, Vec<String>);

pub(super) async fn events(
    connection: &Connection,
    task: &str,
    after: u64,
    limit: usize,
) -> Result<Vec<LoggedEvent>, StoreError> {
    let key = connection.key(&format!("e:{task}"));
    let (mut events, mut from) = (Vec::new(), after.checked_add(1));
    while let Some(start) = from.filter(|_| events.len() < limit) {
        // Each entry has at least one event.
        let size = (limit - events.len()).min(PAGE);
        let mut command = redis::cmd("XRANGE");
        command.arg(&key).arg(start).arg("+").arg("COUNT").arg(size);
        let page: Vec<Entry> = connection.query("read", &command).await?;
        from = None;
        for (_, fields) in &page {
            let [_, first, _, json] = fields.as_slice() else { return Err(corrupt("an event")) };
            let first = first.parse().map_err(|_| corrupt("the number of an event"))?;
            let next = event_chunk::read(task, (first, json), &mut events, (after, limit))?;
            from = Some(next).filter(|_| page.len() == size);
        }
    }
    Ok(events)
}

pub(super) async fn controls(
    connection: &Connection,
    task: &str,
    after: u64,
) -> Result<Vec<Control>, StoreError> {
    let found: Vec<(u64, String, String)> =
        connection.call("read", &scripts::CONTROLS, Arguments::of([task])).await?;
    let waiting = found.into_iter().filter(|(number, ..)| *number > after);
    Ok(waiting.map(|(number, id, body)| Control { number, message: ControlMessage { id, body } }).collect())
}

/// A field of a task's hash, and the same field of another hash.
type TaskField = (String, String, String, String);

pub(super) async fn outbox(connection: &Connection) -> Result<Vec<OutboxEntry>, StoreError> {
    let arguments = Arguments::of(["outbox", "", "b", ""]);
    let found: Vec<TaskField> = connection.call("read", &scripts::ALL_OF, arguments).await?;
    let mut entries = Vec::new();
    for (task, id, stored, _) in found {
        let (deadline, body) = stored.split_once(' ').ok_or_else(|| corrupt("an outbox entry"))?;
        let deadline = deadline.parse().ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
        let deadline = deadline.unwrap_or_default();
        entries.push(OutboxEntry { task, id, body: body.to_owned(), deadline });
    }
    entries.sort_unstable_by(|a, b| (&a.task, &a.id).cmp(&(&b.task, &b.id)));
    Ok(entries)
}

/// The push configurations of the tasks in a set, or of one task.
pub(super) async fn pushes(
    connection: &Connection,
    set: &str,
    task: &str,
) -> Result<Vec<PushRecord>, StoreError> {
    let arguments = Arguments::of([set, task, "w", "d"]);
    let found: Vec<TaskField> = connection.call("read", &scripts::ALL_OF, arguments).await?;
    let mut pushes = Vec::new();
    for (task, id, body, delivered) in found {
        let delivered = delivered.parse().map_err(|_| corrupt("a push configuration"))?;
        pushes.push(PushRecord { task, id, body, delivered });
    }
    pushes.sort_unstable_by(|a, b| (&a.task, &a.id).cmp(&(&b.task, &b.id)));
    Ok(pushes)
}
