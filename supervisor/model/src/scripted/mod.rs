//! A model that answers from a YAML file: for tests, demonstrations, benchmarks and first runs without a key.
//!
//! ```yaml
//! turns:
//!   - when: { agent: supervisor, user: "compare", turn: 0 }
//!     reply:
//!       text: I will ask both.
//!       calls:
//!         - { name: task, arguments: { subagent_type: jira, description: "{{ user }}" } }
//!         - { name: task, arguments: { subagent_type: github, description: "{{ user }}" } }
//!   - when: { agent: supervisor, user: "compare", turn: 1 }
//!     reply:
//!       text: "Jira said: {{ results[0].content | first_line }}"
//!       delay_ms: 20
//!   - when: { user: "*" }
//!     reply: { text: I have no script for this. }
//! ```
//!
//! It has no state: the first turn that matches the conversation answers.
//! Texts and arguments are [minijinja](https://docs.rs/minijinja) templates over
//!
//! * `user`: the last user message,
//! * `results`: the tool results since then, in order, each `{tool, call_id, content, is_error}`,
//! * `last_result`: the content of the last of them,
//! * `history`: every message, each `{role, text}`,
//!
//! with the filters `first_line`, `lines(n)`, `json` (parses), `truncate_chars(n)` and those of minijinja. An undefined
//! name is an error, not an empty string.

mod conversation;
mod playback;
mod script;
mod template;

use std::sync::Arc;

use futures::StreamExt;
use tokio_util::sync::CancellationToken;

pub use script::ScriptError;

use crate::chat::{ChatModel, ChatRequest, ModelError, ModelErrorKind, ModelStream};
use conversation::View;
use script::Script;

/// A model that answers from a script.
#[derive(Debug)]
pub struct Scripted {
    name: Arc<str>,
    origin: Arc<str>,
    script: Arc<Script>,
}

impl Scripted {
    /// Parses a script. `origin`, usually the file's path, is for messages.
    ///
    /// # Errors
    ///
    /// A [`ScriptError`] that names the origin and the line, or the path of the faulty template.
    pub fn from_yaml(origin: &str, yaml: &str) -> Result<Self, ScriptError> {
        let script = Arc::new(Script::parse(origin, yaml)?);
        Ok(Self { name: name_of(origin), origin: origin.into(), script })
    }

    fn unmatched(&self, view: &View<'_>) -> ModelError {
        let message = format!("no turn of the script {} answers {view}; add one to its `turns`", self.origin);
        self.error(ModelErrorKind::InvalidRequest, message)
    }

    fn error(&self, kind: ModelErrorKind, message: String) -> ModelError {
        ModelError { kind, model: self.name.to_string(), message, retry_after: None }
    }

    fn play(&self, request: &ChatRequest, cancel: CancellationToken) -> Result<ModelStream, ModelError> {
        let view = View::of(request);
        let turn = self
            .script
            .turns
            .iter()
            .find(|turn| turn.when.matches(&view))
            .ok_or_else(|| self.unmatched(&view))?;
        let reply = turn.reply.render(&self.script.templates, &view).map_err(|fault| {
            let message = format!("the script {} cannot answer {view}: {fault}", self.origin);
            self.error(ModelErrorKind::InvalidRequest, message)
        })?;
        Ok(playback::stream(Arc::clone(&self.name), reply, cancel))
    }
}

impl ChatModel for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream(&self, request: ChatRequest, cancel: CancellationToken) -> ModelStream {
        match self.play(&request, cancel) {
            Ok(stream) => stream,
            Err(error) => futures::stream::iter([Err(error)]).boxed(),
        }
    }
}

/// `scripted/` and the file's name without its extensions.
fn name_of(origin: &str) -> Arc<str> {
    let file = origin.rsplit('/').next().unwrap_or(origin);
    let stem = file.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("script");
    format!("scripted/{stem}").into()
}

#[cfg(test)]
#[path = "scripted_tests.rs"]
mod tests;
