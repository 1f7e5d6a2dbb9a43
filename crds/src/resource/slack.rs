//! `spec.slack`: the Slack bot of the supervisor.

use serde::{Deserialize, Serialize};

#[cfg(feature = "kubernetes")]
use super::common::list_map;
use super::common::{ConfigMapRef, EnvVar, Resources};
use super::derive::{JsonSchema, KubeSchema};
use super::rules;
use super::volume::VolumeClaim;

/// The Slack bot: one pod of the supervisor's image. The condition `SlackReady` reports its state.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(rules::SLACK_ENV_CEL).message(rules::SLACK_ENV),
    validation = Rule::new(rules::SLACK_VOLUME_FIXED_CEL).message(rules::SLACK_VOLUME_FIXED),
)]
pub struct Slack {
    /// The Secret with the tokens of the Slack app.
    pub secret_ref: SlackSecretRef,
    /// How the bot receives events.
    #[serde(default)]
    pub mode: SlackMode,
    /// A `ConfigMap` whose keys become variables of the bot, for example `SLACK_INTEGRATION_BOT_CONFIG` with the channels. A change
    /// replaces the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ConfigMapRef>,
    /// Variables of the bot, which override those of `configMapRef`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = list_map("name"))]
    pub env: Vec<EnvVar>,
    /// A volume for the database of the bot. If absent, the database lives as long as the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<VolumeClaim>,
    /// Compute resources of the bot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

/// A Secret of the same namespace with the tokens of a Slack app.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlackSecretRef {
    /// The name. The Secret has the keys `SLACK_BOT_TOKEN` and, with the mode `socket`, `SLACK_APP_TOKEN` or, with `http`,
    /// `SLACK_SIGNING_SECRET`. The bot gets no other key.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// How the bot receives events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SlackMode {
    /// The bot opens a WebSocket to Slack.
    #[default]
    Socket,
    /// Slack sends requests to `/slack/events` of the bot's Service, through an Ingress of yours.
    Http,
}

impl SlackMode {
    /// The name of the mode.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Http => "http",
        }
    }
}
