//! Push configurations of tasks, and how far the events of a task were delivered.

use std::fmt;

use crate::commit_rules::check_id;
use crate::error::StoreError;
use crate::json::limit_of;

/// Most bytes of the body of one push configuration.
pub const MAX_PUSH_BYTES: usize = 16 << 10;

/// A push configuration of a task.
#[derive(Clone, PartialEq, Eq)]
pub struct PushRecord {
    pub task: String,
    /// The id, unique within the task.
    pub id: String,
    /// The configuration as JSON, at most [`MAX_PUSH_BYTES`]. Stores do not parse it.
    pub body: String,
    /// The number of the last delivered event: 0 before the first, [`PushRecord::DONE`] after the task's last.
    pub delivered: u64,
}

impl PushRecord {
    /// The number once the task's end was delivered.
    pub const DONE: u64 = i64::MAX.unsigned_abs();
}

/// Without the body, which holds credentials.
impl fmt::Debug for PushRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, id, body: _, delivered } = self;
        f.debug_struct("PushRecord")
            .field("task", task)
            .field("id", id)
            .field("delivered", delivered)
            .finish_non_exhaustive()
    }
}

/// A change to the push configurations.
#[derive(Debug)]
pub(crate) enum PushChange {
    Put(PushRecord),
    Delivered { task: String, id: String, seq: u64 },
    Delete { task: String, id: String },
}

impl PushChange {
    /// Checks the size of a configuration.
    pub(crate) fn put(push: PushRecord) -> Result<Self, StoreError> {
        check_id("task", &push.task)?;
        check_id("push configuration", &push.id)?;
        match push.body.len() {
            bytes if bytes <= limit_of(&push.body, MAX_PUSH_BYTES) => Ok(Self::Put(push)),
            bytes => Err(StoreError::TooLarge {
                what: format!("the push configuration {:?} of task {:?}", push.id, push.task),
                bytes,
                limit: MAX_PUSH_BYTES,
            }),
        }
    }

    pub(crate) fn delivered(task: &str, id: &str, seq: u64) -> Self {
        Self::Delivered { task: task.to_owned(), id: id.to_owned(), seq: seq.min(PushRecord::DONE) }
    }

    pub(crate) fn delete(task: &str, id: &str) -> Self {
        Self::Delete { task: task.to_owned(), id: id.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_body_is_printed() {
        let body = r#"{"token": "s3cret"}"#.to_owned();
        let push = PushRecord { task: "t".to_owned(), id: "i".to_owned(), body, delivered: 7 };
        let printed = format!("{push:?} {:?}", PushChange::put(push.clone()));
        assert!(!printed.contains("s3cret") && printed.contains("delivered: 7"), "{printed}");
    }
}
