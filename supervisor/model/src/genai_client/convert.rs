//! Converts conversations to requests of the client library.

use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatRequest as Asked, ChatRole, ContentPart, CustomPart, MessageContent, Tool,
    ToolCall as GenaiCall, ToolName, ToolResponse,
};
use genai::{ModelIden, ModelName};
use serde_json::{Map, Value, json};

use super::provider_conventions::{sends_whole_calls, signs_thoughts};
use crate::chat::{ChatRequest, ToolSpec};
use crate::message::{Message, Part, Role, ToolCall, ToolResult};

/// The member of [`Message::extra`] that names the adapter whose thoughts the message holds.
const MARK: &str = "thoughts_of";

pub(super) fn request(request: &ChatRequest, kind: AdapterKind) -> Asked {
    let messages = request.messages.iter().enumerate();
    let messages = messages.flat_map(|(index, message)| {
        let earlier = request.messages.get(..index).unwrap_or_default();
        message_of(message, kind, |call_id| {
            earlier.iter().rev().flat_map(|message| message.tool_calls()).find(|call| call.id == call_id)
        })
    });
    // Most providers reject an empty message, such as one with only the thoughts of another provider.
    let messages = messages.filter(|message| !message.content.is_empty());
    let messages = if kind == AdapterKind::BedrockApi { alternating(messages) } else { messages.collect() };
    let mut asked = Asked::from_messages(messages);
    asked.system = (!request.system.is_empty()).then(|| request.system.to_string());
    asked.tools = (!request.tools.is_empty()).then(|| tools(&request.tools));
    asked
}

/// Joins consecutive messages of the same side, because Bedrock wants the sides to alternate. Results of tools are on the
/// user's side.
fn alternating(messages: impl Iterator<Item = ChatMessage>) -> Vec<ChatMessage> {
    let mut joined: Vec<ChatMessage> = Vec::new();
    for message in messages {
        let is_assistant = message.role == ChatRole::Assistant;
        match joined.last_mut().filter(|last| (last.role == ChatRole::Assistant) == is_assistant) {
            Some(last) => {
                last.role = if is_assistant { ChatRole::Assistant } else { ChatRole::User };
                last.content = std::mem::take(&mut last.content).extended(message.content);
            }
            None => joined.push(message),
        }
    }
    joined
}

/// The number of tool calls in the conversation.
pub(super) fn calls_in(request: &ChatRequest) -> usize {
    request.messages.iter().map(|message| message.tool_calls().count()).sum()
}

/// The [`Message::extra`] of a message with thoughts, so that they are sent to no other provider.
pub(super) fn provider_mark(kind: AdapterKind) -> Value {
    json!({ MARK: kind.as_lower_str() })
}

/// The tools sorted by name, because the providers' prompt caches match on the bytes.
fn tools(specs: &[ToolSpec]) -> Vec<Tool> {
    let mut tools: Vec<Tool> = specs.iter().map(tool).collect();
    tools.sort_by(|one, other| one.name.as_str().cmp(other.name.as_str()));
    tools
}

fn tool(spec: &ToolSpec) -> Tool {
    let mut tool = Tool::new(ToolName::Custom(spec.name.clone()));
    tool.description = (!spec.description.is_empty()).then(|| spec.description.clone());
    tool.schema = Some(spec.schema.clone());
    tool
}

fn message_of<'a>(
    message: &'a Message,
    kind: AdapterKind,
    call: impl Fn(&str) -> Option<&'a ToolCall>,
) -> Vec<ChatMessage> {
    match message.role {
        Role::User => vec![ChatMessage::user(message.plain_text())],
        Role::Assistant => vec![ChatMessage::assistant(MessageContent::from_parts(assistant(message, kind)))],
        Role::Tool => {
            let responses = message.parts.iter().filter_map(|part| match part {
                Part::ToolResult(result) => Some(response(result, call(&result.call_id))),
                _ => None,
            });
            tool_messages(responses.collect(), kind)
        }
    }
}

/// Anthropic and Bedrock want all results of a turn in one message; Ollama wants a message for each.
fn tool_messages(responses: Vec<ToolResponse>, kind: AdapterKind) -> Vec<ChatMessage> {
    if kind == AdapterKind::Ollama {
        return responses
            .into_iter()
            .map(|response| ChatMessage::tool(MessageContent::from_tool_responses(vec![response])))
            .collect();
    }
    vec![ChatMessage::tool(MessageContent::from_tool_responses(responses))]
}

/// Marks a failed result in its text, because the client library has no flag for it.
fn response(result: &ToolResult, call: Option<&ToolCall>) -> ToolResponse {
    let says_so =
        result.content.trim_start().get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    let content = if result.is_error && !says_so {
        format!("Error: {}", result.content)
    } else {
        result.content.clone()
    };
    let response = ToolResponse::new(result.call_id.clone(), content);
    match call {
        Some(call) => response.with_fn_name(call.name.clone()),
        None => response,
    }
}

fn assistant(message: &Message, kind: AdapterKind) -> Vec<ContentPart> {
    let author = message.extra.as_ref().and_then(|extra| extra.get(MARK)?.as_str());
    let ours = author.is_none_or(|author| author == kind.as_lower_str());
    let mut parts = Vec::with_capacity(message.parts.len());
    let mut of_next_call: Vec<String> = Vec::new();
    for (index, part) in message.parts.iter().enumerate() {
        match part {
            // Anthropic and Bedrock refuse a blank text.
            Part::Text { text } if text.trim().is_empty() => {}
            Part::Text { text } => parts.push(ContentPart::Text(text.clone())),
            Part::Reasoning { text, signature: Some(signature) } if ours => {
                let next = message.parts.get(index + 1);
                if sends_whole_calls(kind) && text.is_empty() && matches!(next, Some(Part::ToolCall(_))) {
                    of_next_call.push(signature.clone());
                } else {
                    parts.extend(signed(text, signature, kind));
                }
            }
            // Only providers without signatures accept an unsigned thought.
            Part::Reasoning { text, signature: None } if ours && !signs_thoughts(kind) => {
                parts.push(ContentPart::ReasoningContent(text.clone()));
            }
            Part::Reasoning { .. } | Part::ToolResult(_) => {}
            Part::ToolCall(call) => {
                parts.push(ContentPart::ToolCall(tool_call(call, std::mem::take(&mut of_next_call))));
            }
            Part::Provider { provider, block } => {
                parts.extend((provider == kind.as_lower_str()).then(|| custom(kind, block)));
            }
        }
    }
    parts
}

/// The signature before its thought, as the client library pairs them. Anthropic needs the thought even if it is empty;
/// for Bedrock a signature alone is a redacted thought.
fn signed(text: &str, signature: &str, kind: AdapterKind) -> Vec<ContentPart> {
    let alone = text.is_empty() && kind != AdapterKind::Anthropic;
    let thought = (!alone).then(|| ContentPart::ReasoningContent(text.to_owned()));
    [ContentPart::ThoughtSignature(signature.to_owned())].into_iter().chain(thought).collect()
}

fn custom(kind: AdapterKind, block: &Value) -> ContentPart {
    let model_iden = Some(ModelIden::new(kind, ModelName::from_static("")));
    ContentPart::Custom(CustomPart { model_iden, data: block.clone() })
}

fn tool_call(call: &ToolCall, signatures: Vec<String>) -> GenaiCall {
    GenaiCall {
        call_id: call.id.clone(),
        fn_name: call.name.clone(),
        fn_arguments: replayed(&call.arguments),
        thought_signatures: (!signatures.is_empty()).then_some(signatures),
    }
}

/// The arguments of a past call as the object that providers require. Wraps any other text, so that the model sees it
/// together with the error.
fn replayed(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(members)) => Value::Object(members),
        _ if arguments.trim().is_empty() => Value::Object(Map::new()),
        _ => json!({ "invalid_arguments": arguments }),
    }
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
