//! Conversations. Checkpoints contain these types, so they are independent of any client library.

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or the agent that delegates.
    User,
    /// The model.
    Assistant,
    /// Results of the calls that the assistant message before asked for.
    Tool,
}

/// One message of a conversation. The system prompt is a part of each request instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub parts: Vec<Part>,
    /// Other members of a provider's message, unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Value>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: String,
    },
    /// A thought of the model. Some providers reject a tool turn that is replayed without it.
    Reasoning {
        /// The visible thought; may be empty if there is a signature.
        text: String,
        /// The provider's signature of the thought.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    /// Any other content block of a provider, replayed to that provider unchanged.
    Provider {
        /// The provider's name, e.g. `anthropic`.
        provider: String,
        block: Value,
    },
}

/// A call of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call; results refer to it.
    pub id: String,
    pub name: String,
    /// The arguments as the model wrote them. The executor of the call parses them, and reports invalid JSON to the model.
    pub arguments: String,
}

/// The result of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    pub call_id: String,
    pub content: String,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl Message {
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::Text { text: text.into() }], extra: None }
    }

    /// A tool message with these results.
    pub fn results(results: impl IntoIterator<Item = ToolResult>) -> Self {
        Self { role: Role::Tool, parts: results.into_iter().map(Part::ToolResult).collect(), extra: None }
    }

    /// The texts of the message, joined.
    pub fn plain_text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None })
            .collect()
    }

    /// The calls of the message, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None })
    }
}
