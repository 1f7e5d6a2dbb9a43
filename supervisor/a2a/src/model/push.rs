//! Where to push a task's updates to, and what a client asks of that (1.0, sections 3.1.7 to 3.1.10, 4.3).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::serde_helpers::null_is_default;

/// Where to push a task's updates to. What authenticates is left out when it is printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPushNotificationConfig {
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Its id, unique in the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The address.
    pub url: String,
    /// A token that is sent along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// How to authenticate there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationInfo>,
}

impl TaskPushNotificationConfig {
    /// A bare address.
    pub fn new(url: impl Into<String>) -> Self {
        Self { tenant: None, id: None, task_id: None, url: url.into(), token: None, authentication: None }
    }
}

impl fmt::Debug for TaskPushNotificationConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskPushNotificationConfig")
            .field("id", &self.id)
            .field("task_id", &self.task_id)
            .field("authentication", &self.authentication)
            .finish_non_exhaustive()
    }
}

/// How to authenticate at a push address. The credentials are left out when it is printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthenticationInfo {
    /// The HTTP scheme, for example `Bearer`.
    pub scheme: String,
    /// The credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}

impl fmt::Debug for AuthenticationInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthenticationInfo").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

/// Asks for a push configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetTaskPushNotificationConfigRequest {
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The task.
    #[serde(default)]
    pub task_id: String,
    /// The configuration; empty means the task's first, which only 0.3 may ask for.
    #[serde(default)]
    pub id: String,
}

/// Removes a push configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteTaskPushNotificationConfigRequest {
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The task.
    #[serde(default)]
    pub task_id: String,
    /// The configuration.
    #[serde(default)]
    pub id: String,
}

/// Asks for the push configurations of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTaskPushNotificationConfigsRequest {
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The task.
    #[serde(default)]
    pub task_id: String,
    /// At most this many, from 1; `None` means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u32>,
    /// Where the last page ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}

/// A page of push configurations, ordered by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTaskPushNotificationConfigsResponse {
    /// The configurations.
    #[serde(default, deserialize_with = "null_is_default")]
    pub configs: Vec<TaskPushNotificationConfig>,
    /// Where the next page begins; empty at the end.
    #[serde(default)]
    pub next_page_token: String,
}
