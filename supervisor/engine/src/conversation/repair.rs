//! Ensures that every call has exactly one result, because providers reject any other conversation.

use std::sync::Arc;

use caipe_model::{Message, Part, Role, ToolResult};
use serde_json::Value;

use super::Messages;

/// The names of tool calls among the members and the block types of a provider's message.
const CALL_NAMES: [&str; 2] = ["toolUse", "tool_use"];

/// The result of an interrupted call.
pub(crate) fn interrupted(tool: &str) -> String {
    format!("Tool '{tool}' did not complete (session was interrupted).")
}

/// Adds a result to every call without one, right after the message of the call, and drops results that are repeated or
/// belong to no call.
pub(crate) fn repair(messages: &mut Messages) {
    if is_whole(messages) {
        return;
    }
    let mut old = std::mem::take(messages).into_iter().peekable();
    while let Some(message) = old.next() {
        if message.role == Role::Tool {
            // The loop below consumes the results that follow their call.
            continue;
        }
        let mut open = calls(&message);
        messages.push(message);
        let mut parts = Vec::new();
        while let Some(results) = old.next_if(|next| next.role == Role::Tool) {
            parts.extend(results.parts.iter().filter(|part| answers(part, &mut open)).cloned());
        }
        parts.extend(open.into_iter().map(|call| Part::ToolResult(call.interrupted())));
        if !parts.is_empty() {
            messages.push(Arc::new(Message { role: Role::Tool, parts, extra: None }));
        }
    }
}

fn is_whole(messages: &[Arc<Message>]) -> bool {
    let mut open: Vec<Call> = Vec::new();
    for message in messages {
        if message.role == Role::Tool {
            if !message.parts.iter().all(|part| answers(part, &mut open)) {
                return false;
            }
        } else {
            if !open.is_empty() {
                return false;
            }
            open = calls(message);
        }
    }
    open.is_empty()
}

/// A call that waits for its result.
struct Call {
    id: String,
    name: String,
}

impl Call {
    fn interrupted(self) -> ToolResult {
        ToolResult { content: interrupted(&self.name), call_id: self.id, is_error: true }
    }
}

/// Whether this is the result of an open call. Removes the call from the open ones.
fn answers(part: &Part, open: &mut Vec<Call>) -> bool {
    let Some(id) = result_id(part) else { return false };
    let Some(at) = open.iter().position(|call| call.id == id) else { return false };
    open.remove(at);
    true
}

fn result_id(part: &Part) -> Option<&str> {
    match part {
        Part::ToolResult(result) => Some(&result.call_id),
        Part::Provider { block, .. } => text(block, &["tool_use_id", "toolUseId"]),
        _ => None,
    }
}

/// The calls of a message in all three shapes, each id once.
fn calls(message: &Message) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    if message.role != Role::Assistant {
        return calls;
    }
    let parts = message.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(Call { id: call.id.clone(), name: call.name.clone() }),
        Part::Provider { block, .. } => provider_call(block),
        _ => None,
    });
    for call in parts.chain(message.extra.iter().flat_map(extra_calls)) {
        if calls.iter().all(|known| known.id != call.id) {
            calls.push(call);
        }
    }
    calls
}

/// A block of type `tool_use`, or one that holds a member of that name.
fn provider_call(block: &Value) -> Option<Call> {
    let is_call = block.get("type").and_then(Value::as_str).is_some_and(|kind| CALL_NAMES.contains(&kind));
    if is_call { call(block) } else { CALL_NAMES.iter().find_map(|name| call(block.get(*name)?)) }
}

/// The calls among a provider's additional members: one or a list of them under either name.
fn extra_calls(extra: &Value) -> Vec<Call> {
    let members = extra.get("additional_kwargs").unwrap_or(extra);
    let under = CALL_NAMES.iter().filter_map(|name| members.get(*name));
    under
        .flat_map(|value| value.as_array().map_or_else(|| vec![value], |list| list.iter().collect()))
        .filter_map(call)
        .collect()
}

fn call(block: &Value) -> Option<Call> {
    let id = text(block, &["id", "toolUseId"])?.to_owned();
    Some(Call { id, name: text(block, &["name"]).unwrap_or("unknown").to_owned() })
}

fn text<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| value.get(*key)?.as_str())
}
