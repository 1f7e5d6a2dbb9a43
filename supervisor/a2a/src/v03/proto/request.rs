//! What a client asks.

use serde::{Deserialize, Serialize};

use super::Message;
use crate::model::{Metadata, null_is_default};
use crate::v03::PushConfig;

/// A message and how to answer it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SendRequest {
    /// The message.
    #[serde(alias = "request")]
    pub message: Message,
    /// How to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Configuration>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// How to answer a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// Media types that the client takes; empty means any.
    #[serde(
        default,
        alias = "accepted_output_modes",
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub accepted_output_modes: Vec<String>,
    /// Where to push updates to.
    #[serde(default, alias = "push_notification", skip_serializing_if = "Option::is_none")]
    pub push_notification: Option<PushConfig>,
    /// At most this many of the newest messages as history; absent means all.
    #[serde(default, alias = "history_length", skip_serializing_if = "Option::is_none")]
    pub history_length: Option<u32>,
    /// Whether to wait until the task ends or waits. Absent means `false`, which clients leave out as every
    /// default, while in the JSON-RPC binding it means that nothing was said.
    #[serde(default, deserialize_with = "null_is_default")]
    pub blocking: bool,
}

/// A push config with the name of its resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPushConfig {
    /// `tasks/{id}/pushNotificationConfigs/{id}`; the path of a request says the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The config.
    #[serde(alias = "push_notification_config")]
    pub push_notification_config: PushConfig,
}

/// The body that creates a push config. The package wants the config alone, which the JS client sends; the
/// Python clients send the whole request, with the config as its member `config`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatePushConfig {
    /// The id that the config shall have.
    #[serde(default, alias = "config_id")]
    pub config_id: Option<String>,
    /// The config, in the whole request.
    #[serde(default)]
    pub config: Option<TaskPushConfig>,
    /// The config, alone.
    #[serde(default, alias = "push_notification_config")]
    pub push_notification_config: Option<PushConfig>,
}

impl CreatePushConfig {
    /// The config, wherever it is, under the id that was asked for.
    pub fn into_config(self) -> Option<PushConfig> {
        let inner = self.config.map(|config| config.push_notification_config);
        let mut config = inner.or(self.push_notification_config)?;
        let asked = self.config_id.filter(|id| !id.is_empty());
        config.id = config.id.filter(|id| !id.is_empty()).or(asked);
        Some(config)
    }
}
