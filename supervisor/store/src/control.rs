//! Control messages: what other processes ask of the owner of a run.

use crate::commit_rules::check_id;
use crate::error::StoreError;
use crate::json::limit_of;

/// Most bytes of the body of a control message.
pub const MAX_CONTROL_BYTES: usize = 16 << 10;

/// Most control messages of a task that wait for its owner.
pub const MAX_CONTROLS: usize = 64;

/// A message to the owner of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlMessage {
    /// Unique within the task. A message with the id of an earlier one is ignored.
    pub id: String,
    /// The message as JSON, at most [`MAX_CONTROL_BYTES`]. Stores do not parse it.
    pub body: String,
}

/// A control message with its place in the mailbox of its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// From 1, in the order of arrival.
    pub number: u64,
    pub message: ControlMessage,
}

impl ControlMessage {
    /// Checks the sizes.
    pub(crate) fn check(&self, task: &str) -> Result<(), StoreError> {
        check_id("task", task)?;
        check_id("control message", &self.id)?;
        match self.body.len() {
            bytes if bytes <= limit_of(&self.body, MAX_CONTROL_BYTES) => Ok(()),
            bytes => Err(StoreError::TooLarge {
                what: format!("the control message {:?} to task {task:?}", self.id),
                bytes,
                limit: MAX_CONTROL_BYTES,
            }),
        }
    }
}
