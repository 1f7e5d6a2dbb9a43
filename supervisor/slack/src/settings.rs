//! The settings of the bot, from the environment. The variables of upstream's bot are read as they are.

use std::collections::HashMap;
use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use crate::api::SLACK;

/// How the bot receives events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The bot opens a WebSocket to Slack. Needs an app token.
    Socket,
    /// Slack sends requests to the bot. Needs the signing secret.
    Http,
}

/// The settings of the bot.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How events arrive.
    pub mode: Mode,
    /// The bot token (`xoxb-…`).
    pub bot_token: SecretString,
    /// The app-level token (`xapp-…`), for Socket Mode.
    pub app_token: Option<SecretString>,
    /// The signing secret, for HTTP.
    pub signing_secret: Option<SecretString>,
    /// Whether the bot answers nothing.
    pub silent: bool,
    /// The settings of each channel, by channel id.
    pub channels: Channels,
    /// The prompts for requests that are not sent as they are.
    pub prompts: Prompts,
    /// The base URL of upstream's web UI, which receives feedback.
    pub feedback_url: Option<String>,
    /// The project of Langfuse that receives feedback as scores of traces.
    pub langfuse: Option<Langfuse>,
    /// The base URL of Slack's Web API.
    pub api: String,
    /// Where threads and running turns are.
    pub database: Database,
}

/// Where the bot keeps threads and running turns.
#[derive(Debug, Clone)]
pub enum Database {
    /// A SQLite file, for one process.
    File(PathBuf),
    /// A Redis server, for several processes.
    Redis {
        /// The URL, with user and password where the server wants them.
        url: SecretString,
        /// The certificate authority of the server as PEM.
        certificate_authority: Option<String>,
    },
}

impl std::fmt::Display for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Redis { .. } => f.write_str("the database in Redis"),
        }
    }
}

impl Database {
    /// The database that `CAIPE_SLACK_DATABASE` names.
    fn of(place: Option<String>, certificate_authority: Option<String>) -> Self {
        let place = place.unwrap_or_else(|| "caipe-slack.sqlite3".to_owned());
        let scheme = place.split_once("://").map_or("", |(scheme, _)| scheme);
        if scheme.starts_with("redis") {
            return Self::Redis { url: place.trim().into(), certificate_authority };
        }
        Self::File(place.into())
    }
}

/// A project of Langfuse.
#[derive(Debug, Clone)]
pub struct Langfuse {
    /// The base URL, without a slash at its end.
    pub url: String,
    /// The public key of the project.
    pub public_key: String,
    /// The secret key of the project.
    pub secret_key: SecretString,
}

/// Why the settings are unusable.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A variable is missing.
    #[error("failed to read the settings: set {0}")]
    Missing(&'static str),
    /// A variable has another value than expected.
    #[error("failed to read the settings: {variable}: {reason}")]
    Invalid {
        /// The name of the variable.
        variable: &'static str,
        /// The reason.
        reason: String,
    },
}

/// The settings of channels; none means that the bot answers mentions in every channel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Channels(HashMap<String, Channel>);

/// The settings of a channel, in the shape of upstream's configuration.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Channel {
    /// The name of the channel, for people.
    pub name: String,
    /// Whether the bot answers in the channel.
    pub ai_enabled: bool,
    /// The prompt of mentions, with `{message_text}`.
    pub custom_prompt: Option<String>,
    /// Answers to messages that mention nobody.
    pub qanda: Qanda,
    /// Answers to messages of other bots.
    pub ai_alerts: Alerts,
    /// Further settings.
    pub other: Other,
    /// The agent of newer releases of upstream; ignored with a warning.
    pub agent_id: Option<String>,
    /// The ids of users who may decide on approvals, besides the person who asked.
    pub approvers: Vec<String>,
}

/// Answers to messages that mention nobody.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Qanda {
    /// Whether the bot answers them.
    pub enabled: bool,
    /// Whether it stays silent unless the model is confident.
    pub overthink: bool,
    /// Messages of bots that are answered too.
    pub include_bots: IncludeBots,
    /// The prompt, with `{message_text}`.
    pub custom_prompt: Option<String>,
}

/// Messages of bots that are answered.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct IncludeBots {
    /// Whether messages of bots are answered.
    pub enabled: bool,
    /// The names or ids of these bots; `None` means all.
    pub bot_list: Option<Vec<String>>,
}

/// Answers to alerts, which are messages of other bots.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Alerts {
    /// Whether the bot handles them.
    pub enabled: bool,
    /// The prompt.
    pub custom_prompt: Option<String>,
}

/// Further settings of a channel.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Other {
    /// Where alerts become tickets.
    pub jira: Option<serde_json::Value>,
    /// Who helps if the bot cannot.
    pub escalation: Escalation,
    /// The ids of users who may delete messages of the bot.
    pub delete_admins: Vec<String>,
}

/// Who helps if the bot cannot.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Escalation {
    /// The ids of users (`U…`) or user groups (`S…`).
    pub users: Vec<String>,
    /// A reaction that the bot adds to the question.
    pub emoji: Emoji,
    /// On-call people of `VictorOps`, which are not supported.
    pub victorops: VictorOps,
}

/// On-call people of `VictorOps`, which are not supported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct VictorOps {
    /// Whether they are to be called; refused.
    pub enabled: bool,
}

/// A reaction.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct Emoji {
    /// Whether the bot adds it.
    pub enabled: bool,
    /// Its name, without colons.
    pub name: String,
}

impl Default for Emoji {
    fn default() -> Self {
        Self { enabled: false, name: "eyes".to_owned() }
    }
}

impl Escalation {
    /// Whether there are people or a reaction for it.
    pub fn is_set(&self) -> bool {
        !self.users.is_empty() || self.emoji.enabled
    }
}

impl Channels {
    /// Reads the YAML of upstream's configuration: a map from channel ids to channels.
    ///
    /// # Errors
    /// The line and the reason.
    pub fn read(yaml: &str) -> Result<Self, String> {
        let channels: HashMap<String, Channel> =
            serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
        for (id, channel) in &channels {
            if channel.other.escalation.victorops.enabled {
                return Err(format!(
                    "{id}: other.escalation.victorops is not supported; list users or user groups instead"
                ));
            }
            if channel.agent_id.is_some() {
                tracing::warn!(channel = id, "agent_id is ignored: the supervisor chooses the agents");
            }
            if channel.ai_alerts.enabled && channel.qanda.enabled && channel.qanda.include_bots.enabled {
                return Err(format!(
                    "{id}: enable either ai_alerts or qanda.include_bots, because both answer bots"
                ));
            }
        }
        Ok(Self(channels))
    }

    /// The settings of a channel; `None` if the bot answers nothing there. Without any channel, all allow mentions.
    pub fn get(&self, id: &str) -> Option<Channel> {
        if self.0.is_empty() {
            return Some(Channel { ai_enabled: true, ..Channel::default() });
        }
        self.0.get(id).filter(|channel| channel.ai_enabled || channel.ai_alerts.enabled).cloned()
    }
}

/// The prompts of the bot. Each may contain `{message_text}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompts {
    /// For mentions.
    pub mention: Option<String>,
    /// For direct messages; otherwise that of mentions.
    pub direct: Option<String>,
    /// For messages that mention nobody.
    pub qanda: Option<String>,
    /// For such messages, if only confident answers are wanted.
    pub overthink: Option<String>,
    /// For a mention after the bot stayed silent.
    pub follow_up: Option<String>,
    /// For alerts.
    pub alerts: Option<String>,
    /// Added to prompts of channels.
    pub style: Option<String>,
}

impl Settings {
    /// Reads the settings from variables.
    ///
    /// # Errors
    /// A variable that is missing or has an unexpected value.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let text = |names: &[&str]| {
            names.iter().find_map(|name| variable(name).filter(|value| !value.trim().is_empty()))
        };
        let mode = match text(&["SLACK_INTEGRATION_BOT_MODE", "SLACK_BOT_MODE"])
            .unwrap_or_default()
            .to_lowercase()
            .as_str()
        {
            "" | "socket" => Mode::Socket,
            "http" => Mode::Http,
            other => {
                return Err(invalid(
                    "SLACK_INTEGRATION_BOT_MODE",
                    format!("`{other}` is neither `socket` nor `http`"),
                ));
            }
        };
        let bot_token = text(&["SLACK_INTEGRATION_BOT_TOKEN", "SLACK_BOT_TOKEN"])
            .ok_or(SettingsError::Missing("SLACK_BOT_TOKEN to the bot token (xoxb-…) of the app"))?;
        let app_token = text(&["SLACK_INTEGRATION_APP_TOKEN", "SLACK_APP_TOKEN"]);
        if mode == Mode::Socket && app_token.is_none() {
            return Err(SettingsError::Missing(
                "SLACK_APP_TOKEN to an app-level token (xapp-…) with the scope connections:write",
            ));
        }
        let signing_secret = text(&["SLACK_INTEGRATION_SIGNING_SECRET", "SLACK_SIGNING_SECRET"]);
        if mode == Mode::Http && signing_secret.is_none() {
            return Err(SettingsError::Missing("SLACK_SIGNING_SECRET to the signing secret of the app"));
        }
        if text(&["SLACK_INTEGRATION_ENABLE_AUTH"])
            .is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
        {
            let reason = "OAuth 2.0 client credentials are not supported; set A2A_AUTH_SHARED_KEY to the key of the supervisor";
            return Err(invalid("SLACK_INTEGRATION_ENABLE_AUTH", reason.to_owned()));
        }
        let silent = text(&["SLACK_INTEGRATION_SILENCE_ENV", "SILENCE_ENV"]);
        Ok(Self {
            mode,
            bot_token: bot_token.trim().into(),
            app_token: app_token.map(|token| token.trim().into()),
            signing_secret: signing_secret.map(|secret| secret.trim().into()),
            silent: silent.is_some_and(|value| value.trim().eq_ignore_ascii_case("true")),
            channels: channels(text(&["SLACK_INTEGRATION_BOT_CONFIG", "CAIPE_BOT_CONFIG"]))?,
            prompts: Prompts {
                mention: text(&["SLACK_INTEGRATION_PROMPT_MENTION"]),
                direct: text(&["SLACK_INTEGRATION_PROMPT_DM"]),
                qanda: text(&["SLACK_INTEGRATION_PROMPT_QANDA"]),
                overthink: text(&["SLACK_INTEGRATION_PROMPT_OVERTHINK_QANDA"]),
                follow_up: text(&["SLACK_INTEGRATION_PROMPT_HUMBLE_FOLLOWUP"]),
                alerts: text(&["SLACK_INTEGRATION_PROMPT_AI_ALERTS"]),
                style: text(&["SLACK_INTEGRATION_PROMPT_RESPONSE_STYLE"]),
            },
            feedback_url: text(&["CAIPE_UI_URL"]),
            langfuse: langfuse(text)?,
            api: text(&["SLACK_API_URL"]).unwrap_or_else(|| SLACK.to_owned()),
            database: Database::of(text(&["CAIPE_SLACK_DATABASE"]), text(&["REDIS_CA"])),
        })
    }
}

const fn invalid(variable: &'static str, reason: String) -> SettingsError {
    SettingsError::Invalid { variable, reason }
}

/// The project of Langfuse: all variables or none of them.
fn langfuse(text: impl Fn(&[&str]) -> Option<String>) -> Result<Option<Langfuse>, SettingsError> {
    let names = ["LANGFUSE_HOST", "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"];
    match names.map(|name| text(&[name])) {
        [None, None, None] => Ok(None),
        [Some(url), Some(public_key), Some(secret_key)] => {
            let is_http =
                url::Url::parse(url.trim()).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            if !is_http {
                return Err(invalid("LANGFUSE_HOST", "it is not an http or https URL".to_owned()));
            }
            Ok(Some(Langfuse {
                url: url.trim().trim_end_matches('/').to_owned(),
                public_key: public_key.trim().to_owned(),
                secret_key: secret_key.trim().into(),
            }))
        }
        [None, ..] => {
            Err(SettingsError::Missing("LANGFUSE_HOST to the URL of Langfuse, or no LANGFUSE_ variable"))
        }
        [_, None, _] => Err(SettingsError::Missing("LANGFUSE_PUBLIC_KEY to the public key of the project")),
        [_, _, None] => Err(SettingsError::Missing("LANGFUSE_SECRET_KEY to the secret key of the project")),
    }
}

/// The channels, from YAML or a file of it.
fn channels(value: Option<String>) -> Result<Channels, SettingsError> {
    let Some(value) = value else { return Ok(Channels::default()) };
    let failed = |reason| invalid("SLACK_INTEGRATION_BOT_CONFIG", reason);
    let is_path = !value.contains('\n') && !value.contains(": ") && !value.trim_start().starts_with('{');
    let yaml = if is_path {
        std::fs::read_to_string(&value).map_err(|error| failed(format!("failed to read {value}: {error}")))?
    } else {
        value
    };
    Channels::read(&yaml).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Settings::read(find).map_err(|error| error.to_string())
    }

    #[test]
    fn the_variables_of_upstream_are_read() {
        let config = "C1:\n  name: '#help'\n  ai_enabled: true\n  qanda: {enabled: true, overthink: true}\n  other:\n    escalation: {users: [U1], emoji: {enabled: true}}\n  agent_id: x\nC2:\n  name: '#off'\n";
        let settings = read(&[
            ("SLACK_INTEGRATION_BOT_TOKEN", "xoxb-1"),
            ("SLACK_APP_TOKEN", "xapp-1"),
            ("SLACK_INTEGRATION_BOT_CONFIG", config),
            ("SLACK_INTEGRATION_SILENCE_ENV", "TRUE"),
            ("SLACK_INTEGRATION_PROMPT_MENTION", "Hi {message_text}"),
        ])
        .unwrap();
        assert!(settings.silent && settings.mode == Mode::Socket);
        assert_eq!(settings.prompts.mention.as_deref(), Some("Hi {message_text}"));
        let help = settings.channels.get("C1").unwrap();
        assert!(
            help.qanda.overthink
                && help.other.escalation.is_set()
                && help.other.escalation.emoji.name == "eyes"
        );
        assert!(settings.channels.get("C2").is_none() && settings.channels.get("C3").is_none());
    }

    #[test]
    fn a_missing_or_wrong_setting_is_named() {
        for (variables, part) in [
            (&[][..], "SLACK_BOT_TOKEN"),
            (&[("SLACK_BOT_TOKEN", "x")], "SLACK_APP_TOKEN"),
            (&[("SLACK_BOT_TOKEN", "x"), ("SLACK_BOT_MODE", "http")], "SLACK_SIGNING_SECRET"),
            (&[("SLACK_BOT_TOKEN", "x"), ("SLACK_BOT_MODE", "carrier")], "`carrier` is neither"),
            (
                &[("SLACK_BOT_TOKEN", "x"), ("SLACK_APP_TOKEN", "y"), ("LANGFUSE_SECRET_KEY", "z")],
                "LANGFUSE_HOST",
            ),
            (
                &[
                    ("SLACK_BOT_TOKEN", "x"),
                    ("SLACK_APP_TOKEN", "y"),
                    ("LANGFUSE_HOST", "langfuse:3000"),
                    ("LANGFUSE_PUBLIC_KEY", "x"),
                    ("LANGFUSE_SECRET_KEY", "z"),
                ],
                "LANGFUSE_HOST: it is not",
            ),
            (
                &[
                    ("SLACK_BOT_TOKEN", "x"),
                    ("SLACK_APP_TOKEN", "y"),
                    ("CAIPE_BOT_CONFIG", "C1: {ai_enabled: maybe}"),
                ],
                "BOT_CONFIG",
            ),
            (
                &[("SLACK_BOT_TOKEN", "x"), ("SLACK_APP_TOKEN", "y"), ("CAIPE_BOT_CONFIG", "/no/such/file")],
                "/no/such/file",
            ),
        ] {
            assert!(read(variables).unwrap_err().contains(part), "{part}");
        }
    }
}
