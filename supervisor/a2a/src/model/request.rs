//! What a client asks.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::serde_helpers::{is_false, null_is_default, timestamp};
use super::{Message, Metadata, Task, TaskPushNotificationConfig, TaskState};

/// Begins a task or goes on with one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SendMessageRequest {
    /// The tenant of the interface that the client chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The message.
    pub message: Message,
    /// How to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<SendMessageConfiguration>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl SendMessageRequest {
    /// A request without any wishes.
    pub const fn new(message: Message) -> Self {
        Self { tenant: None, message, configuration: None, metadata: None }
    }

    /// Whether to answer at once instead of when the task ends or waits.
    pub fn returns_immediately(&self) -> bool {
        self.configuration.as_ref().is_some_and(|configuration| configuration.return_immediately)
    }

    /// How much history the answer may hold; `None` means all.
    pub fn history_length(&self) -> Option<u32> {
        self.configuration.as_ref().and_then(|configuration| configuration.history_length)
    }
}

/// How to answer a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendMessageConfiguration {
    /// Media types that the client takes; empty means any.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub accepted_output_modes: Vec<String>,
    /// Where to push updates to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_push_notification_config: Option<TaskPushNotificationConfig>,
    /// At most this many of the newest messages as history; `None` means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_length: Option<u32>,
    /// Whether to answer at once instead of when the task ends or waits.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "is_false")]
    pub return_immediately: bool,
}

/// Asks for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetTaskRequest {
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The task.
    pub id: String,
    /// At most this many of the newest messages as history; `None` means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_length: Option<u32>,
}

/// Stops a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CancelTaskRequest {
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The task.
    pub id: String,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// Follows a task that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeToTaskRequest {
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The task.
    pub id: String,
}

/// Asks for tasks, page by page, newest status first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksRequest {
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Only this conversation's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    /// Only those in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskState>,
    /// At most this many, 1 to 100; `None` means 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u32>,
    /// Where the last page ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
    /// At most this many of the newest messages as history; `None` means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_length: Option<u32>,
    /// Only those whose status changed after this time.
    #[serde(default, with = "timestamp", skip_serializing_if = "Option::is_none")]
    pub status_timestamp_after: Option<Timestamp>,
    /// Whether to include artifacts.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "is_false")]
    pub include_artifacts: bool,
}

impl ListTasksRequest {
    /// The page size in force.
    pub fn page_size(&self) -> u32 {
        self.page_size.unwrap_or(50)
    }
}

/// A page of tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResponse {
    /// The tasks.
    #[serde(default, deserialize_with = "null_is_default")]
    pub tasks: Vec<Task>,
    /// Where the next page begins; empty at the end.
    #[serde(default)]
    pub next_page_token: String,
    /// The page size in force.
    #[serde(default)]
    pub page_size: u32,
    /// How many there are in all.
    #[serde(default)]
    pub total_size: u64,
}
