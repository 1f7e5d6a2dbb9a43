//! What a process asks of the process that runs a task.

use caipe_store::{ControlMessage, StoreError};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "control", rename_all = "snake_case")]
pub(super) enum ControlRequest {
    /// The task is to be canceled.
    Cancel,
}

impl ControlRequest {
    /// A new message with this request.
    pub(super) fn message(self) -> Result<ControlMessage, StoreError> {
        let body = serde_json::to_string(&self).map_err(|error| StoreError::Encode(error.to_string()))?;
        Ok(ControlMessage { id: Uuid::now_v7().to_string(), body })
    }

    /// The request of a message; `None` if a newer program has sent it.
    pub(super) fn read(message: &ControlMessage) -> Option<Self> {
        serde_json::from_str(&message.body).ok()
    }
}
