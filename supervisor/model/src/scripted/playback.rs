//! Renders a reply and streams it.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use minijinja::Environment;
use reqwest::StatusCode;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::conversation::View;
use super::script::{Call, Fault, Repeat, Reply};
use super::template::{TemplateContext, TemplateError, Text};
use crate::chat::{Completion, FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelStream, Usage};
use crate::classify::{Failure, Subject, classify};
use crate::message::{Message, Part, Role, ToolCall};

/// The bytes of a token, if the script gives no usage.
const BYTES_PER_TOKEN: u64 = 4;

/// A reply with rendered templates.
#[derive(Debug)]
pub(super) struct Rendered {
    reasoning: String,
    text: String,
    repeat: Option<Repeat>,
    calls: Vec<ToolCall>,
    reason: FinishReason,
    usage: Usage,
    fault: Option<Fault>,
    /// The pauses before the first token and between two.
    pace: (Duration, Duration),
}

impl Reply {
    pub(super) fn render(
        &self,
        templates: &Environment<'static>,
        view: &View<'_>,
    ) -> Result<Rendered, TemplateError> {
        let context = TemplateContext::new(templates, view);
        let render =
            |text: &Option<Text>| text.as_ref().map_or(Ok(String::new()), |text| text.render(&context));
        let (reasoning, text) = (render(&self.reasoning)?, render(&self.text)?);
        let so_far = view.calls_so_far();
        let calls: Vec<ToolCall> = self
            .calls
            .iter()
            .enumerate()
            .map(|(index, call)| call.render(&context, so_far + index))
            .collect::<Result<_, _>>()?;
        let default = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        let usage = self.usage.unwrap_or_else(|| estimate(view, &text, self.repeat.as_ref()));
        Ok(Rendered {
            reasoning,
            text,
            repeat: self.repeat.clone(),
            calls,
            reason: self.finish.unwrap_or(default),
            usage,
            fault: self.error.clone(),
            pace: (Duration::from_millis(self.ttft_ms), Duration::from_millis(self.delay_ms)),
        })
    }
}

impl Call {
    fn render(&self, context: &TemplateContext<'_, '_>, index: usize) -> Result<ToolCall, TemplateError> {
        let arguments = match context.render_tree(&self.arguments)? {
            Value::String(raw) => raw,
            Value::Null => "{}".to_owned(),
            tree => tree.to_string(),
        };
        let id = self.id.as_ref().map(|id| id.render(context)).transpose()?;
        Ok(ToolCall {
            id: id.unwrap_or_else(|| format!("call_{index}")),
            name: self.name.render(context)?,
            arguments,
        })
    }
}

/// An estimate of the reply's tokens, for budgets and dashboards.
fn estimate(view: &View<'_>, text: &str, repeat: Option<&Repeat>) -> Usage {
    let results: usize = view.results.iter().map(|result| result.content.len()).sum();
    let repeated = repeat.map_or(0, |repeat| repeat.token.len().saturating_mul(repeat.times));
    let tokens = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(BYTES_PER_TOKEN);
    Usage {
        input_tokens: tokens(view.system.len() + view.user.len() + results),
        output_tokens: tokens(text.len().saturating_add(repeated)),
        ..Usage::default()
    }
}

/// The position of the next token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    Reasoning(usize),
    Text(usize),
    Repeat(usize),
    CallStart(usize),
    /// The call, and the offset in its arguments.
    CallArguments(usize, usize),
    Finish,
    Over,
}

struct Playback {
    model: Arc<str>,
    reply: Rendered,
    cursor: Cursor,
    sent: usize,
    /// When the first token was requested.
    begun: Option<Instant>,
    cancel: CancellationToken,
}

pub(super) fn stream(model: Arc<str>, reply: Rendered, cancel: CancellationToken) -> ModelStream {
    let playback = Playback { model, reply, cursor: Cursor::Reasoning(0), sent: 0, begun: None, cancel };
    stream::unfold(Box::new(playback), |mut playback| async move {
        playback.step().await.map(|item| (item, playback))
    })
    .boxed()
}

impl Playback {
    async fn step(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        if self.cursor == Cursor::Over {
            return None;
        }
        self.settle();
        if self.pause().await.is_err() {
            self.cursor = Cursor::Over;
            let (kind, model) = (ModelErrorKind::Cancelled, self.model.to_string());
            return Some(Err(ModelError { kind, model, message: "cancelled".into(), retry_after: None }));
        }
        let fails = |fault: &mut Fault| self.sent >= fault.after_tokens || self.cursor == Cursor::Finish;
        if let Some(fault) = self.reply.fault.take_if(fails) {
            self.cursor = Cursor::Over;
            return Some(Err(fault.error(&self.model)));
        }
        self.sent += 1;
        Some(Ok(self.event()))
    }

    /// Waits until the next token is due, counted from the first one. Fails if the turn is cancelled.
    async fn pause(&mut self) -> Result<(), ()> {
        if self.cancel.is_cancelled() {
            return Err(());
        }
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let (first, between) = self.reply.pace;
        let wait = if self.sent == 0 { first } else { between };
        if wait.is_zero() || self.cursor == Cursor::Finish {
            // A reply without pauses must not starve the other tasks of its thread.
            tokio::task::consume_budget().await;
            return Ok(());
        }
        let due = begun + first + between.saturating_mul(u32::try_from(self.sent).unwrap_or(u32::MAX));
        tokio::select! {
            () = self.cancel.cancelled() => Err(()),
            () = tokio::time::sleep_until(due) => Ok(()),
        }
    }

    /// Moves the cursor past the empty parts of the reply.
    fn settle(&mut self) {
        let reply = &self.reply;
        loop {
            self.cursor = match self.cursor {
                Cursor::Reasoning(at) if at >= reply.reasoning.len() => Cursor::Text(0),
                Cursor::Text(at) if at >= reply.text.len() => Cursor::Repeat(0),
                Cursor::Repeat(done) if reply.repeat.as_ref().is_none_or(|repeat| done >= repeat.times) => {
                    Cursor::CallStart(0)
                }
                Cursor::CallStart(index) if index >= reply.calls.len() => Cursor::Finish,
                Cursor::CallArguments(index, at)
                    if reply.calls.get(index).is_none_or(|call| at >= call.arguments.len()) =>
                {
                    Cursor::CallStart(index + 1)
                }
                _ => return,
            }
        }
    }

    /// The event at the cursor. Advances the cursor.
    fn event(&mut self) -> ModelEvent {
        match self.cursor {
            Cursor::Reasoning(at) => {
                let word = word(&self.reply.reasoning, at);
                self.cursor = Cursor::Reasoning(at + word.len());
                ModelEvent::ReasoningDelta(word.to_owned())
            }
            Cursor::Text(at) => {
                let word = word(&self.reply.text, at);
                self.cursor = Cursor::Text(at + word.len());
                ModelEvent::TextDelta(word.to_owned())
            }
            Cursor::Repeat(done) => {
                self.cursor = Cursor::Repeat(done + 1);
                ModelEvent::TextDelta(
                    self.reply.repeat.as_ref().map(|repeat| repeat.token.clone()).unwrap_or_default(),
                )
            }
            Cursor::CallStart(index) => {
                self.cursor = Cursor::CallArguments(index, 0);
                let (id, name) = self.call(index, |call| (call.id.clone(), call.name.clone()));
                ModelEvent::ToolCallStart { id, name }
            }
            Cursor::CallArguments(index, at) => {
                let (id, delta) =
                    self.call(index, |call| (call.id.clone(), word(&call.arguments, at).to_owned()));
                self.cursor = Cursor::CallArguments(index, at + delta.len());
                ModelEvent::ToolArgsDelta { id, delta }
            }
            Cursor::Finish | Cursor::Over => {
                self.cursor = Cursor::Over;
                ModelEvent::Finish(self.completion())
            }
        }
    }

    fn call<T: Default>(&self, index: usize, read: impl FnOnce(&ToolCall) -> T) -> T {
        self.reply.calls.get(index).map(read).unwrap_or_default()
    }

    fn completion(&mut self) -> Completion {
        let mut text = std::mem::take(&mut self.reply.text);
        if let Some(repeat) = &self.reply.repeat {
            text.push_str(&repeat.token.repeat(repeat.times));
        }
        let reasoning = std::mem::take(&mut self.reply.reasoning);
        let mut parts = Vec::with_capacity(2 + self.reply.calls.len());
        parts.extend((!reasoning.is_empty()).then_some(Part::Reasoning { text: reasoning, signature: None }));
        parts.extend((!text.is_empty()).then_some(Part::Text { text }));
        parts.extend(std::mem::take(&mut self.reply.calls).into_iter().map(Part::ToolCall));
        Completion {
            message: Message { role: Role::Assistant, parts, extra: None },
            reason: self.reply.reason,
            usage: self.reply.usage,
            model: self.model.to_string(),
        }
    }
}

/// The word at the offset, with the white space after it.
fn word(text: &str, at: usize) -> &str {
    let rest = text.get(at..).unwrap_or_default();
    let after =
        rest.trim_start().trim_start_matches(|character: char| !character.is_whitespace()).trim_start();
    rest.get(..rest.len() - after.len()).unwrap_or(rest)
}

impl Fault {
    fn error(self, model: &str) -> ModelError {
        let subject = Subject { model: model.to_owned(), ..Subject::default() };
        let asked = self.retry_after_ms.map(Duration::from_millis);
        let mut error = match (self.kind, self.status.and_then(|status| StatusCode::from_u16(status).ok())) {
            (None, status @ Some(_)) => {
                let failure =
                    Failure { status, headers: None, body: self.message.as_deref().unwrap_or_default() };
                classify(&failure, &subject, jiff::Timestamp::UNIX_EPOCH)
            }
            (kind, _) => {
                let kind = kind.unwrap_or(ModelErrorKind::Overloaded);
                let message = self.message.unwrap_or_else(|| format!("the script says {}", kind.category()));
                subject.error(kind, message)
            }
        };
        error.retry_after = asked.or(error.retry_after);
        error
    }
}
