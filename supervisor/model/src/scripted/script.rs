//! The script file: its format, its validation, and the matching of turns.

use minijinja::Environment;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::conversation::View;
use super::template::{self, Text};
use crate::chat::{FinishReason, ModelErrorKind, Usage};

/// Most bytes of a script.
const LARGEST: usize = 1024 * 1024;

/// Most tokens of a `repeat`.
const MOST_TOKENS: usize = 10_000_000;

/// An invalid script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file is not YAML, or not a script; `message` names the line and the column.
    #[error("failed to read the script {origin}: {message}")]
    Parse { origin: String, message: String },
    /// A value is invalid.
    #[error("failed to read the script {origin}: {path}: {message}")]
    Invalid {
        origin: String,
        /// The path of the value, e.g. `turns[3].reply.text`.
        path: String,
        message: String,
    },
    /// The file is too large.
    #[error(
        "failed to read the script {origin}: {size} bytes are more than the {LARGEST} that a script may have"
    )]
    TooLarge {
        origin: String,
        /// The size in bytes.
        size: usize,
    },
}

/// A valid script.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) turns: Vec<Turn>,
    pub(super) templates: Environment<'static>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    turns: Vec<Turn>,
}

/// A reply and its condition.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Turn {
    #[serde(default)]
    pub(super) when: When,
    pub(super) reply: Reply,
}

/// The condition of a turn. An absent member matches everything.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct When {
    /// The name on the system prompt's `Agent:` line or, in a prompt without that line, any phrase of it.
    agent: Option<String>,
    /// A phrase of the system prompt.
    system: Option<String>,
    /// A phrase of the last user message, or `*`.
    user: Option<String>,
    /// The number of assistant messages since the last user message.
    turn: Option<u32>,
    /// Whether a tool has answered since the last user message.
    has_result: Option<bool>,
    /// A phrase of any tool result since the last user message.
    result_contains: Option<String>,
    /// The tool that answered last.
    tool: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Reply {
    pub(super) reasoning: Option<Text>,
    pub(super) text: Option<Text>,
    pub(super) repeat: Option<Repeat>,
    pub(super) calls: Vec<Call>,
    pub(super) usage: Option<Usage>,
    pub(super) finish: Option<FinishReason>,
    pub(super) error: Option<Fault>,
    /// Milliseconds between two tokens.
    pub(super) delay_ms: u64,
    /// Milliseconds before the first token.
    pub(super) ttft_ms: u64,
}

/// The same token many times over, after the text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Repeat {
    pub(super) token: String,
    pub(super) times: usize,
}

/// A tool call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) name: Text,
    /// A tree whose strings are templates; or one string, which is the text of the arguments, valid JSON or not.
    #[serde(default)]
    pub(super) arguments: Value,
    pub(super) id: Option<Text>,
}

/// An error instead of the end of a reply.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fault {
    pub(super) kind: Option<ModelErrorKind>,
    /// An HTTP status, classified like that of a provider.
    pub(super) status: Option<u16>,
    pub(super) message: Option<String>,
    pub(super) retry_after_ms: Option<u64>,
    /// The number of tokens before the error.
    #[serde(default)]
    pub(super) after_tokens: usize,
}

impl Script {
    pub(super) fn parse(origin: &str, yaml: &str) -> Result<Self, ScriptError> {
        if yaml.len() > LARGEST {
            return Err(ScriptError::TooLarge { origin: origin.into(), size: yaml.len() });
        }
        let file: File = serde_saphyr::from_str(yaml)
            .map_err(|error| ScriptError::Parse { origin: origin.into(), message: error.to_string() })?;
        let script = Self { turns: file.turns, templates: template::environment() };
        match script.fault() {
            Some((path, message)) => Err(ScriptError::Invalid { origin: origin.into(), path, message }),
            None => Ok(script),
        }
    }

    /// The path of the first invalid value, and its error.
    fn fault(&self) -> Option<(String, String)> {
        if self.turns.is_empty() {
            return Some(("turns".into(), "a script needs at least one turn".into()));
        }
        self.turns.iter().enumerate().find_map(|(index, turn)| {
            let (path, message) = turn.reply.fault(&self.templates)?;
            Some((format!("turns[{index}].reply{path}"), message))
        })
    }
}

impl When {
    pub(super) fn matches(&self, view: &View<'_>) -> bool {
        let phrase =
            |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|wanted| says(text, wanted));
        self.turn.is_none_or(|turn| turn == view.turn)
            && self.has_result.is_none_or(|wanted| wanted != view.results.is_empty())
            && self.tool.as_ref().is_none_or(|tool| view.results.last().is_some_and(|last| last.tool == tool))
            && phrase(&self.user, &view.user)
            && self.is_agent(view)
            && phrase(&self.system, view.system)
            && self
                .result_contains
                .as_ref()
                .is_none_or(|wanted| view.results.iter().any(|result| says(result.content, wanted)))
    }

    fn is_agent(&self, view: &View<'_>) -> bool {
        let Some(wanted) = &self.agent else { return true };
        view.agent()
            .map_or_else(|| says(view.system, wanted), |name| name.eq_ignore_ascii_case(wanted.trim()))
    }
}

/// Whether the text contains the phrase, whatever the case; `*` is in every text.
fn says(text: &str, phrase: &str) -> bool {
    phrase == "*" || text.contains(phrase) || text.to_lowercase().contains(&phrase.to_lowercase())
}

impl Reply {
    fn fault(&self, templates: &Environment<'_>) -> Option<(String, String)> {
        let says_nothing = self.text.is_none()
            && self.reasoning.is_none()
            && self.repeat.is_none()
            && self.calls.is_empty()
            && self.error.is_none();
        if says_nothing {
            return Some((String::new(), "a reply needs a text, calls, repeat or an error".into()));
        }
        self.number_fault().or_else(|| self.template_fault(templates))
    }

    fn number_fault(&self) -> Option<(String, String)> {
        if self.repeat.as_ref().is_some_and(|repeat| repeat.times > MOST_TOKENS) {
            return Some((".repeat.times".into(), format!("at most {MOST_TOKENS}")));
        }
        let error = self.error.as_ref()?;
        if error.kind.is_some() == error.status.is_some() {
            return Some((".error".into(), "needs either a kind or a status".into()));
        }
        let status = error.status?;
        let is_error = StatusCode::from_u16(status).is_ok_and(|status| status.as_u16() >= 400);
        (!is_error).then(|| (".error.status".into(), format!("{status} is not the status of an error")))
    }

    fn template_fault(&self, templates: &Environment<'_>) -> Option<(String, String)> {
        let texts = [(".reasoning", &self.reasoning), (".text", &self.text)];
        let mut texts = texts.iter().filter_map(|(path, text)| Some(((*path).to_owned(), text.as_ref()?)));
        let text_fault = texts.find_map(|(path, text)| Some((path, text.fault(templates)?)));
        text_fault.or_else(|| {
            self.calls.iter().enumerate().find_map(|(index, call)| {
                let (path, message) = call.fault(templates)?;
                Some((format!(".calls[{index}]{path}"), message))
            })
        })
    }
}

impl Call {
    fn fault(&self, templates: &Environment<'_>) -> Option<(String, String)> {
        let name = self.name.fault(templates).map(|message| (".name".into(), message));
        name.or_else(|| Some((".id".into(), self.id.as_ref()?.fault(templates)?))).or_else(|| {
            template::tree_fault(templates, &self.arguments)
                .map(|(path, message)| (format!(".arguments{path}"), message))
        })
    }
}
