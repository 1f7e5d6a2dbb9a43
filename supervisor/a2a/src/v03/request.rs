//! The parameters of requests.

use serde::{Deserialize, Serialize};

use super::{Message, PushConfig};
use crate::error::Violation;
use crate::model::{Metadata, nullable};

/// Parameters of `message/send` and `message/stream`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SendParams {
    pub message: Message,
    pub configuration: Option<Configuration>,
    /// Free-form data.
    pub metadata: Option<Metadata>,
}

impl SendParams {
    /// The tags that the specification requires and clients omit.
    pub fn strict_faults(&self) -> Vec<Violation> {
        let missing = |field: String| Violation::new(field, "is required");
        let message = self.message.kind.is_none().then(|| missing("message.kind".to_owned()));
        let parts = self.message.parts.iter().enumerate().filter(|(_, part)| part.kind.is_none());
        let parts = parts.map(|(index, _)| missing(format!("message.parts[{index}].kind")));
        message.into_iter().chain(parts).collect()
    }
}

/// How the server responds to a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// The media types that the client accepts; empty means any.
    #[serde(default, deserialize_with = "nullable")]
    pub accepted_output_modes: Vec<String>,
    /// Whether to respond when the task ends or waits; the default is `true`.
    pub blocking: Option<bool>,
    /// At most this many of the newest messages as history; absent means all.
    pub history_length: Option<u32>,
    /// The push configuration for the task.
    pub push_notification_config: Option<PushConfig>,
}

/// Parameters of `tasks/get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskQueryParams {
    /// The id of the task. Empty if the client omitted it.
    #[serde(default)]
    pub id: String,
    /// At most this many of the newest messages as history; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_length: Option<u32>,
}

/// Parameters of `tasks/cancel` and `tasks/resubscribe`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskIdParams {
    /// The id of the task. Empty if the client omitted it.
    #[serde(default)]
    pub id: String,
    /// Free-form data about the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}
