//! Push configurations and the requests for them (1.0, sections 3.1.7 to 3.1.10, 4.3).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::serde_helpers::{count, nullable};

/// A push configuration. Its `Debug` form omits the address, the token and the credentials.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPushNotificationConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The id, unique within the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, alias = "task_id", skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The address.
    pub url: String,
    /// A token that the server sends with each notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The authentication at the URL.
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

/// The authentication at a push URL. Its `Debug` form omits the credentials.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthenticationInfo {
    /// The HTTP scheme, for example `Bearer`.
    pub scheme: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}

impl fmt::Debug for AuthenticationInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthenticationInfo").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

/// A request for one push configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GetTaskPushNotificationConfigRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(alias = "task_id", deserialize_with = "nullable")]
    pub task_id: String,
    /// The id of the configuration. Empty, which only 0.3 allows, means the first one of the task.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
}

/// A request to delete a push configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeleteTaskPushNotificationConfigRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(alias = "task_id", deserialize_with = "nullable")]
    pub task_id: String,
    /// The id of the configuration.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
}

/// A request for the push configurations of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListTaskPushNotificationConfigsRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(alias = "task_id", deserialize_with = "nullable")]
    pub task_id: String,
    /// The most configurations to return, at least 1; `None` means all.
    #[serde(alias = "page_size", deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub page_size: Option<u32>,
    /// The token of the page to return; `None` means the first page.
    #[serde(alias = "page_token", skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}

/// A page of push configurations, ordered by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTaskPushNotificationConfigsResponse {
    /// The configurations.
    #[serde(default, deserialize_with = "nullable")]
    pub configs: Vec<TaskPushNotificationConfig>,
    /// The token of the next page; empty on the last page.
    #[serde(default, alias = "next_page_token", deserialize_with = "nullable")]
    pub next_page_token: String,
}
