//! Turns the events of the client library into those of one model turn; pure.

use std::collections::VecDeque;

use genai::adapter::AdapterKind;
use genai::chat::{ChatStreamEvent, ContentPart, StopReason, StreamEnd, ToolCall as Chunk};
use serde_json::Value;

use super::convert;
use super::provider_conventions::sends_whole_calls;
use crate::chat::{Completion, FinishReason, ModelEvent, Usage};
use crate::message::{Message, Part, Role, ToolCall};

/// The stream of a turn ended without an answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TurnFault {
    /// The stream ended without a stop reason: the connection broke.
    #[error("the connection closed before the answer was complete")]
    NoStopReason,
    /// The provider stopped, with its own reason.
    #[error("the provider stopped without an answer ({reason})")]
    Aborted { reason: String },
}

/// The part of a turn that has arrived.
pub(super) struct Turn {
    model: String,
    kind: AdapterKind,
    /// Tool calls in the conversation before this turn.
    calls_before: usize,
    text: String,
    calls: Vec<Pending>,
}

struct Pending {
    /// The provider's id, by which later pieces refer to the call.
    wire_id: String,
    /// The id in our events.
    id: String,
    name: String,
    arguments: String,
    signatures: Vec<String>,
}

impl Turn {
    pub(super) fn new(model: String, kind: AdapterKind, calls_before: usize) -> Self {
        Self { model, kind, calls_before, text: String::new(), calls: Vec::new() }
    }

    /// Adds an event of the client library. Returns whether the turn is complete.
    pub(super) fn accept(
        &mut self,
        event: ChatStreamEvent,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<bool, TurnFault> {
        match event {
            ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                self.text.push_str(&chunk.content);
                out.push_back(ModelEvent::TextDelta(chunk.content));
            }
            ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                out.push_back(ModelEvent::ReasoningDelta(chunk.content));
            }
            ChatStreamEvent::ToolCallChunk(chunk) => self.call_piece(chunk.tool_call, out),
            ChatStreamEvent::End(end) => {
                out.push_back(ModelEvent::Finish(self.complete(end)?));
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    /// Emits the new part of the arguments: each piece contains all of them so far.
    fn call_piece(&mut self, chunk: Chunk, out: &mut VecDeque<ModelEvent>) {
        let arguments = text_of(chunk.fn_arguments);
        let known = if sends_whole_calls(self.kind) {
            None
        } else {
            // Some servers give every call an empty id. Arguments that do not continue show another call.
            self.calls.iter_mut().rev().find(|call| {
                call.wire_id == chunk.call_id
                    && call.name == chunk.fn_name
                    && arguments.starts_with(&call.arguments)
            })
        };
        if let Some(call) = known {
            let delta = arguments.get(call.arguments.len()..).unwrap_or_default();
            if !delta.is_empty() {
                out.push_back(ModelEvent::ToolArgsDelta { id: call.id.clone(), delta: delta.to_owned() });
            }
            call.arguments = arguments;
        } else if !chunk.fn_name.is_empty() {
            let (wire_id, name) = (chunk.call_id, chunk.fn_name);
            let id = self.id_for(&wire_id, &name);
            out.push_back(ModelEvent::ToolCallStart { id: id.clone(), name: name.clone() });
            if !arguments.is_empty() {
                out.push_back(ModelEvent::ToolArgsDelta { id: id.clone(), delta: arguments.clone() });
            }
            let signatures = chunk.thought_signatures.unwrap_or_default();
            self.calls.push(Pending { wire_id, id, name, arguments, signatures });
        }
    }

    /// The provider's id, if it is unique. The client library's own ids (`call#NAME#0` for Gemini) repeat, so they are
    /// numbered through the conversation in the same form.
    fn id_for(&self, wire_id: &str, name: &str) -> String {
        let number = self.calls_before + self.calls.len();
        if wire_id.starts_with("call#") {
            return format!("call#{name}#{number}");
        }
        let taken = self.calls.iter().any(|call| call.id == wire_id);
        if wire_id.is_empty() || taken { format!("call_{number}") } else { wire_id.to_owned() }
    }

    fn complete(&mut self, end: StreamEnd) -> Result<Completion, TurnFault> {
        let reason = self.reason(end.captured_stop_reason.as_ref())?;
        let usage = end.captured_usage.as_ref().map(usage).unwrap_or_default();
        let thoughts = end.captured_reasoning_content;
        let leading = end.captured_content.map(genai::chat::MessageContent::into_parts).unwrap_or_default();
        let message = self.message(leading, thoughts);
        Ok(Completion { message, reason, usage, model: self.model.clone() })
    }

    fn reason(&self, reason: Option<&StopReason>) -> Result<FinishReason, TurnFault> {
        let done = if self.calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        match reason.ok_or(TurnFault::NoStopReason)? {
            StopReason::MaxTokens(_) => {
                tracing::warn!(model = %self.model, "an answer reached the output limit of the model and is cut off");
                Ok(FinishReason::Length)
            }
            StopReason::ContentFilter(_) => Ok(FinishReason::ContentFilter),
            StopReason::Other(reason) if self.text.is_empty() && self.calls.is_empty() => {
                Err(TurnFault::Aborted { reason: reason.clone() })
            }
            _ => Ok(done),
        }
    }

    /// Thoughts first, as the providers want them replayed, then the text, then the calls.
    fn message(&mut self, captured: Vec<ContentPart>, thoughts: Option<String>) -> Message {
        let calls = std::mem::take(&mut self.calls);
        let of_calls: Vec<&String> = calls.iter().flat_map(|call| &call.signatures).collect();
        let mut parts = signed_thoughts(captured, self.kind, &of_calls);
        let unsigned = thoughts.filter(|text| !text.is_empty() && !has_thought_text(&parts));
        if let Some(text) = unsigned {
            parts.insert(0, Part::Reasoning { text, signature: None });
        }
        let has_thoughts = !parts.is_empty() || !of_calls.is_empty();
        let text = std::mem::take(&mut self.text);
        parts.extend((!text.is_empty()).then_some(Part::Text { text }));
        parts.extend(calls.into_iter().flat_map(Pending::into_parts));
        Message {
            role: Role::Assistant,
            parts,
            extra: has_thoughts.then(|| convert::provider_mark(self.kind)),
        }
    }
}

impl Pending {
    /// The call, after its signatures.
    fn into_parts(self) -> impl Iterator<Item = Part> {
        let signatures = self
            .signatures
            .into_iter()
            .map(|signature| Part::Reasoning { text: String::new(), signature: Some(signature) });
        let arguments = if self.arguments.is_empty() { "{}".to_owned() } else { self.arguments };
        signatures.chain([Part::ToolCall(ToolCall { id: self.id, name: self.name, arguments })])
    }
}

fn has_thought_text(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Reasoning { text, .. } if !text.is_empty()))
}

/// The captured thoughts and provider blocks, without the signatures of calls.
fn signed_thoughts(captured: Vec<ContentPart>, kind: AdapterKind, of_calls: &[&String]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for part in captured {
        match part {
            ContentPart::ThoughtSignature(signature) if of_calls.contains(&&signature) => {}
            ContentPart::ThoughtSignature(signature) => {
                parts.push(Part::Reasoning { text: String::new(), signature: Some(signature) });
            }
            ContentPart::ReasoningContent(thought) => match parts.last_mut() {
                Some(Part::Reasoning { text, signature: Some(_) }) if text.is_empty() => *text = thought,
                _ => parts.push(Part::Reasoning { text: thought, signature: None }),
            },
            ContentPart::Custom(custom) => {
                parts.push(Part::Provider { provider: kind.as_lower_str().to_owned(), block: custom.data });
            }
            _ => {}
        }
    }
    parts
}

/// The arguments as text: the client library has a string while they stream, and a tree if they arrive whole.
fn text_of(arguments: Value) -> String {
    match arguments {
        Value::String(text) => text,
        Value::Null => String::new(),
        tree => tree.to_string(),
    }
}

fn usage(usage: &genai::chat::Usage) -> Usage {
    let tokens = |count: Option<i32>| u64::try_from(count.unwrap_or_default()).unwrap_or_default();
    let prompt = usage.prompt_tokens_details.as_ref();
    let completion = usage.completion_tokens_details.as_ref();
    Usage {
        input_tokens: tokens(usage.prompt_tokens),
        output_tokens: tokens(usage.completion_tokens),
        cache_read_tokens: tokens(prompt.and_then(|details| details.cached_tokens)),
        cache_write_tokens: tokens(prompt.and_then(|details| details.cache_creation_tokens)),
        reasoning_tokens: tokens(completion.and_then(|details| details.reasoning_tokens)),
    }
}

#[cfg(test)]
#[path = "event_mapping_tests.rs"]
mod tests;
