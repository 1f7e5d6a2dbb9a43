//! Push configurations and the parameters of their methods, with the conversions.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{self, Metadata, nullable};

/// A push configuration. Its `Debug` form omits everything but the id.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub url: String,
    /// A token that each notification contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The authentication at the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
}

impl fmt::Debug for PushConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushConfig").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The authentication at a push URL. Its `Debug` form omits the credentials.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authentication {
    /// HTTP schemes; 1.0 keeps the first.
    #[serde(default, deserialize_with = "nullable")]
    pub schemes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authentication").field("schemes", &self.schemes).finish_non_exhaustive()
    }
}

/// Parameters of `tasks/pushNotificationConfig/set`, and the result of it, `get` and `list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPushConfig {
    pub task_id: String,
    /// The configuration.
    pub push_notification_config: PushConfig,
}

/// Parameters of `tasks/pushNotificationConfig/get` and `delete`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushConfigParams {
    /// The task.
    pub id: String,
    /// The configuration. Without it, `get` returns the first one of the task; `delete` needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_notification_config_id: Option<String>,
    /// Free-form data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl From<PushConfig> for model::TaskPushNotificationConfig {
    fn from(config: PushConfig) -> Self {
        let authentication = config.authentication.and_then(|authentication| {
            let scheme = authentication.schemes.into_iter().next()?;
            Some(model::AuthenticationInfo { scheme, credentials: authentication.credentials })
        });
        Self {
            tenant: None,
            id: config.id,
            task_id: None,
            url: config.url,
            token: config.token,
            authentication,
        }
    }
}

impl From<model::TaskPushNotificationConfig> for PushConfig {
    fn from(config: model::TaskPushNotificationConfig) -> Self {
        let authentication = config.authentication.map(|authentication| Authentication {
            schemes: vec![authentication.scheme],
            credentials: authentication.credentials,
        });
        Self { id: config.id, url: config.url, token: config.token, authentication }
    }
}

impl From<TaskPushConfig> for model::TaskPushNotificationConfig {
    fn from(params: TaskPushConfig) -> Self {
        Self { task_id: Some(params.task_id), ..params.push_notification_config.into() }
    }
}

impl From<model::TaskPushNotificationConfig> for TaskPushConfig {
    fn from(mut config: model::TaskPushNotificationConfig) -> Self {
        let task_id = config.task_id.take().unwrap_or_default();
        Self { task_id, push_notification_config: config.into() }
    }
}

impl From<PushConfigParams> for model::GetTaskPushNotificationConfigRequest {
    fn from(params: PushConfigParams) -> Self {
        Self { tenant: None, task_id: params.id, id: params.push_notification_config_id.unwrap_or_default() }
    }
}

impl From<PushConfigParams> for model::DeleteTaskPushNotificationConfigRequest {
    fn from(params: PushConfigParams) -> Self {
        Self { tenant: None, task_id: params.id, id: params.push_notification_config_id.unwrap_or_default() }
    }
}

/// `tasks/pushNotificationConfig/list` names the task alone and is not paged.
impl From<PushConfigParams> for model::ListTaskPushNotificationConfigsRequest {
    fn from(params: PushConfigParams) -> Self {
        Self { task_id: params.id, ..Self::default() }
    }
}
