//! The requests of a client, and the page of tasks.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::serde_helpers::{count, is_false, nullable, timestamp};
use super::{Message, Metadata, Task, TaskPushNotificationConfig, TaskState};

/// A request with a message that starts a task or continues one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SendMessageRequest {
    /// The tenant of the interface that the client chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    pub message: Message,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<SendMessageConfiguration>,
    /// Free-form data about the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl SendMessageRequest {
    /// A request with the default configuration.
    pub const fn new(message: Message) -> Self {
        Self { tenant: None, message, configuration: None, metadata: None }
    }

    /// Whether to respond at once instead of when the task ends or is interrupted.
    pub fn returns_immediately(&self) -> bool {
        self.configuration.as_ref().is_some_and(|configuration| configuration.return_immediately)
    }

    /// The most messages of history in the response; `None` means all.
    pub fn history_length(&self) -> Option<u32> {
        self.configuration.as_ref().and_then(|configuration| configuration.history_length)
    }
}

/// How the server responds to a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SendMessageConfiguration {
    /// The media types that the client accepts; empty means any.
    #[serde(
        alias = "accepted_output_modes",
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub accepted_output_modes: Vec<String>,
    #[serde(alias = "task_push_notification_config", skip_serializing_if = "Option::is_none")]
    pub task_push_notification_config: Option<TaskPushNotificationConfig>,
    /// The most messages of history to return, the newest ones; `None` means all.
    #[serde(alias = "history_length", deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<u32>,
    /// Whether to respond at once instead of when the task ends or is interrupted.
    #[serde(alias = "return_immediately", deserialize_with = "nullable", skip_serializing_if = "is_false")]
    pub return_immediately: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GetTaskRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// The most messages of history to return, the newest ones; `None` means all.
    #[serde(alias = "history_length", deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CancelTaskRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub id: String,
    /// Free-form data about the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeToTaskRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub id: String,
}

/// A request for a page of tasks, newest status first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListTasksRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Return only tasks of this context.
    #[serde(alias = "context_id", skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    /// Return only tasks in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskState>,
    /// The most tasks to return, 1 to 100; `None` means 50.
    #[serde(alias = "page_size", deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u32>,
    /// The token of the page to return; `None` means the first page.
    #[serde(alias = "page_token", skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
    /// The most messages of history to return, the newest ones; `None` means all.
    #[serde(alias = "history_length", deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<u32>,
    /// Return only tasks whose status changed after this time.
    #[serde(alias = "status_timestamp_after", with = "timestamp", skip_serializing_if = "Option::is_none")]
    pub status_timestamp_after: Option<Timestamp>,
    /// Whether to include artifacts.
    #[serde(alias = "include_artifacts", deserialize_with = "nullable", skip_serializing_if = "is_false")]
    pub include_artifacts: bool,
}

impl ListTasksRequest {
    /// The page size that the server uses.
    pub fn page_size(&self) -> u32 {
        self.page_size.unwrap_or(50)
    }
}

/// A page of tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListTasksResponse {
    #[serde(deserialize_with = "nullable")]
    pub tasks: Vec<Task>,
    /// The token of the next page; empty on the last page.
    #[serde(alias = "next_page_token", deserialize_with = "nullable")]
    pub next_page_token: String,
    /// The page size that the server uses.
    #[serde(alias = "page_size", deserialize_with = "nullable")]
    pub page_size: u32,
    /// The number of tasks on all pages.
    #[serde(alias = "total_size", deserialize_with = "nullable")]
    pub total_size: u64,
}
