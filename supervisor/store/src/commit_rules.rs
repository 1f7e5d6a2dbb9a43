//! The rules of commits, the same for every backend. Pure.

use crate::error::StoreError;
use crate::event_chunk::EventChunk;
use crate::json::limit_of;
use crate::types::{Commit, TaskRecord};

/// Most bytes of the id of a conversation or a task. Clients choose these.
pub const MAX_ID_BYTES: usize = 1024;

/// Most bytes of the body of an entry of the outbox.
pub const MAX_OUTBOX_BYTES: usize = 16 << 10;

/// What is stored about the log of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LogPosition {
    /// The token of the newest lease.
    pub(crate) token: u64,
    /// The number of the last commit under this token.
    pub(crate) number: u64,
    /// The number of the last event.
    pub(crate) last: u64,
}

/// Why a commit contradicts the stored data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("task {0:?} has no record; commit it before its events, or with them")]
    UnknownTask(String),
    #[error("task {task:?} expects an event above {last}, not {found}: is there a second writer?")]
    OutOfSequence { task: String, last: u64, found: u64 },
    #[error("another process continues task {task:?}")]
    LeaseLost { task: String },
    #[error("task {task:?} exists")]
    Exists { task: String },
    #[error("conversation {context:?} belongs to another principal")]
    Foreign { context: String },
}

impl Refusal {
    pub(crate) fn by(self, backend: &'static str) -> StoreError {
        match self {
            Self::LeaseLost { task } => StoreError::LeaseLost { task },
            Self::Exists { task } => StoreError::Exists { task },
            Self::Foreign { context } => StoreError::ForeignConversation { context },
            refusal => StoreError::Refused { backend, reason: refusal.to_string() },
        }
    }
}

/// Checks the parts of a commit by themselves.
pub(crate) fn check(commit: &Commit) -> Result<(), StoreError> {
    if commit.conversation.is_some() {
        check_id("conversation", &commit.context)?;
    }
    if let Some(record) = &commit.task {
        check_id("task", &record.id)?;
        check_id("conversation", &record.context)?;
    }
    for entry in &commit.outbox {
        check_id("outbox entry", &entry.id)?;
        let bytes = entry.body.len();
        if bytes > limit_of(&entry.body, MAX_OUTBOX_BYTES) {
            let what = format!("the outbox entry {:?} of task {:?}", entry.id, entry.task);
            return Err(StoreError::TooLarge { what, bytes, limit: MAX_OUTBOX_BYTES });
        }
        if commit.fence.as_ref().is_none_or(|fence| fence.task != entry.task) {
            return Err(StoreError::Encode("an outbox entry needs the lease of its task".to_owned()));
        }
    }
    if let Some(fence) = &commit.fence {
        check_id("task", &fence.task)?;
    } else if !commit.events.is_empty() {
        return Err(StoreError::Encode("events need the lease of their task".to_owned()));
    }
    Ok(())
}

/// Whether the commit may be written: `false` if it was written before. `position` is `None` if the task of its fence has no
/// record.
pub(crate) fn admit(commit: &Commit, position: Option<LogPosition>) -> Result<bool, Refusal> {
    let Some(fence) = &commit.fence else { return Ok(true) };
    let brings = commit.task.as_ref().is_some_and(|record| record.id == fence.task);
    let position = position.or_else(|| brings.then(LogPosition::default));
    let position = position.ok_or_else(|| Refusal::UnknownTask(fence.task.clone()))?;
    if fence.token != position.token {
        return Err(Refusal::LeaseLost { task: fence.task.clone() });
    }
    if fence.number <= position.number {
        return Ok(false);
    }
    let mut last = position.last;
    for EventChunk { first, last: end, .. } in &commit.events {
        if *first <= last {
            return Err(Refusal::OutOfSequence { task: fence.task.clone(), last, found: *first });
        }
        last = *end;
    }
    Ok(true)
}

/// The owner of a conversation: the principal of its first task, if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner(pub(crate) Option<String>);

/// Whether a commit may create the task. `owner` is `None` if there is no such conversation.
pub(crate) fn admit_new(record: &TaskRecord, is_known: bool, owner: Option<&Owner>) -> Result<(), Refusal> {
    if is_known {
        return Err(Refusal::Exists { task: record.id.clone() });
    }
    if record.owner.is_some() && owner.is_some_and(|owner| owner.0 != record.owner) {
        return Err(Refusal::Foreign { context: record.context.clone() });
    }
    Ok(())
}

/// The task that a commit changes.
pub(crate) fn changed_task(commit: &Commit) -> Option<&str> {
    let of_fence = commit.fence.as_ref().map(|fence| &fence.task);
    of_fence.or_else(|| commit.task.as_ref().map(|record| &record.id)).map(String::as_str)
}

pub(crate) fn check_id(of: &'static str, id: &str) -> Result<(), StoreError> {
    match id.len() {
        0 => Err(StoreError::Encode(format!("the id of a {of} is empty"))),
        1..=MAX_ID_BYTES => Ok(()),
        bytes => Err(StoreError::TooLarge { what: format!("the id of a {of}"), bytes, limit: MAX_ID_BYTES }),
    }
}
