//! A commit, serialised and checked by its caller before any other caller waits for it.

use caipe_engine::{Input, RunEvent};
use jiff::Timestamp;
use serde::Serialize;

use crate::types::{Commit, StoreError, TaskRecord};

/// Most bytes of one serialised value: a state, a task's record, one commit's events or appends.
pub const MAX_VALUE_BYTES: usize = 64 << 20;

/// Most bytes of the id of a conversation or a task. Clients choose these.
pub const MAX_ID_BYTES: usize = 1024;

/// A commit as a backend writes it.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) context: String,
    pub(crate) at: Timestamp,
    pub(crate) task: Option<TaskRow>,
    pub(crate) state: Option<String>,
    /// A JSON array of inputs.
    pub(crate) appends: Option<String>,
    pub(crate) events: Option<Chunk>,
}

/// A task's record, as a value and as JSON text.
#[derive(Debug)]
pub(crate) struct TaskRow {
    pub(crate) record: TaskRecord,
    pub(crate) json: String,
}

/// The events of one commit.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) task: String,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) at: Timestamp,
    /// A JSON array of events.
    pub(crate) json: String,
}

/// Why a commit contradicts the stored data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("conversation {0:?} has no snapshot that inputs could be appended to; commit one first")]
    NoSnapshot(String),
    #[error("task {0:?} has no record; commit it before its events, or with them")]
    UnknownTask(String),
    #[error("task {task:?} expects event {expected} next, not {found}: is there a second writer?")]
    OutOfSequence { task: String, expected: u64, found: u64 },
}

impl Refusal {
    pub(crate) fn by(&self, backend: &'static str) -> StoreError {
        StoreError::Failed { backend, action: "commit", reason: self.to_string() }
    }
}

impl Write {
    /// Serialises and checks a commit.
    pub(crate) fn of(commit: Commit, at: Timestamp) -> Result<Self, StoreError> {
        let Commit { context, task, snapshot, appends, events, at: events_at, first_seq, events_of } = commit;
        if snapshot.is_some() || !appends.is_empty() {
            check_id("conversation", &context)?;
        }
        let state =
            snapshot.map(|snapshot| sized(|| format!("the state of {context:?}"), snapshot.0)).transpose()?;
        Ok(Self {
            at,
            task: task.map(TaskRow::of).transpose()?,
            state,
            appends: encode_appends(&context, &appends)?,
            events: Chunk::of(events_of, first_seq, events_at, &events)?,
            context,
        })
    }

    /// Whether the conversation must already have a snapshot.
    pub(crate) const fn needs_snapshot(&self) -> bool {
        self.appends.is_some() && self.state.is_none()
    }

    /// Whether this commit is at most one row, apart from its events.
    pub(crate) const fn is_single(&self) -> bool {
        self.state.is_none() && !(self.task.is_some() && self.appends.is_some())
    }

    /// Whether this commit contains the record of this task.
    pub(crate) fn brings(&self, task: &str) -> bool {
        self.task.as_ref().is_some_and(|row| row.record.id == task)
    }
}

impl TaskRow {
    fn of(record: TaskRecord) -> Result<Self, StoreError> {
        check_id("task", &record.id)?;
        check_id("conversation", &record.context)?;
        let json = sized(|| format!("the record of task {:?}", record.id), encode(&record)?)?;
        Ok(Self { record, json })
    }
}

impl Chunk {
    fn of(task: String, first: u64, at: Timestamp, events: &[RunEvent]) -> Result<Option<Self>, StoreError> {
        if events.is_empty() {
            return Ok(None);
        }
        check_id("task", &task)?;
        // The columns of the stores are signed 64-bit numbers.
        let last = first.checked_add(events.len() as u64 - 1);
        let last = last.filter(|last| first > 0 && *last <= i64::MAX.unsigned_abs()).ok_or_else(|| {
            StoreError::Encode(format!(
                "event number {first} of task {task:?} is out of range; the first is 1"
            ))
        })?;
        let json = sized(|| format!("the events of task {task:?} from {first} on"), encode(events)?)?;
        // Stores keep microseconds.
        let at = Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at);
        Ok(Some(Self { task, first, last, at, json }))
    }

    /// Whether these events continue a log whose last event has this number; `None` if there is no such task.
    pub(crate) fn follows(&self, last: Option<u64>) -> Result<(), Refusal> {
        match last {
            None => Err(Refusal::UnknownTask(self.task.clone())),
            Some(last) if last + 1 == self.first => Ok(()),
            Some(last) => {
                Err(Refusal::OutOfSequence { task: self.task.clone(), expected: last + 1, found: self.first })
            }
        }
    }
}

fn encode_appends(context: &str, appends: &[Input]) -> Result<Option<String>, StoreError> {
    if appends.is_empty() {
        return Ok(None);
    }
    sized(|| format!("what is appended to {context:?}"), encode(appends)?).map(Some)
}

fn encode<T: Serialize + ?Sized>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Encode(error.to_string()))
}

fn sized(what: impl FnOnce() -> String, json: String) -> Result<String, StoreError> {
    if json.len() <= MAX_VALUE_BYTES {
        return Ok(json);
    }
    Err(StoreError::TooLarge { what: what(), bytes: json.len(), limit: MAX_VALUE_BYTES })
}

pub(crate) fn check_id(of: &'static str, id: &str) -> Result<(), StoreError> {
    match id.len() {
        0 => Err(StoreError::Encode(format!("the id of a {of} is empty"))),
        1..=MAX_ID_BYTES => Ok(()),
        bytes => Err(StoreError::TooLarge { what: format!("the id of a {of}"), bytes, limit: MAX_ID_BYTES }),
    }
}
