//! Our own conversation types. They are what checkpoints hold, so they belong to nobody's client library.

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

/// One message of a conversation. The system prompt is not one: it goes along with each request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
    /// Members of a provider's message that fit nowhere else, kept as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Value>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text { text: String },
    /// What the model thought. Some providers refuse a tool turn that is replayed without it.
    Reasoning {
        /// The visible thought; may be empty where only the signature counts.
        text: String,
        /// The provider's proof that the thought is its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// A tool's answer.
    ToolResult(ToolResult),
    /// A content block of one provider that has no form of ours, replayed to that provider untouched.
    Provider {
        /// The provider's name, e.g. `anthropic`.
        provider: String,
        /// The block as it came.
        block: Value,
    },
}

/// A call that the model asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call; results refer to it.
    pub id: String,
    pub name: String,
    /// The arguments as the model wrote them. Text on purpose: the executor of the call parses it
    /// strictly, and tells the model when it is not JSON.
    pub arguments: String,
}

/// The answer to one call.
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

    /// A tool message of the given results, in that order.
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

    /// The calls that the message asks for, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None })
    }
}
