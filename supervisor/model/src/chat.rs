//! The one trait behind which every language model stands.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::message::Message;

/// A language model that answers in pieces.
pub trait ChatModel: Send + Sync + fmt::Debug {
    /// What to call it in logs and errors, as `provider/model`.
    fn name(&self) -> &str;

    /// Starts one model turn.
    ///
    /// The stream ends with exactly one [`ModelEvent::Finish`] or one error, and nothing follows either.
    /// Cancelling the token, or dropping the stream, closes the connection to the provider.
    fn stream(&self, request: ChatRequest, cancel: CancellationToken) -> ModelStream;
}

/// The pieces of one model turn.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// What a model is asked. Cheap to clone: the conversation is shared, not copied.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The system prompt.
    pub system: Arc<str>,
    /// The conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The tools on offer, in a stable order so that prompt caches hit.
    pub tools: Arc<[ToolSpec]>,
    /// Most tokens that the answer may have; `None` leaves it to the provider.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature; `None` leaves it to the provider.
    pub temperature: Option<f64>,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name, `[A-Za-z0-9_-]{1,64}` for most providers.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
}

/// One piece of a model turn.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    TextDelta(String),
    /// A thought.
    ReasoningDelta(String),
    /// A tool call begins.
    ToolCallStart {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments; only what is new.
    ToolArgsDelta {
        /// The call's id.
        id: String,
        /// The next piece of the JSON text.
        delta: String,
    },
    /// The turn is complete.
    Finish(Completion),
}

/// A complete model turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// The whole assistant message, as it goes into the conversation.
    pub message: Message,
    pub reason: FinishReason,
    pub usage: Usage,
    /// Which model answered, as `provider/model`; differs from the one asked after a fallback.
    pub model: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    /// It waits for tool results.
    ToolCalls,
    /// It hit the output limit.
    Length,
    /// The provider's filter stopped it.
    ContentFilter,
}

/// Tokens of one or more turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Prompt tokens, cached ones included.
    pub input_tokens: u64,
    /// Answer tokens, thoughts included.
    pub output_tokens: u64,
    /// Prompt tokens read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Prompt tokens written to the provider's cache.
    pub cache_write_tokens: u64,
    /// Answer tokens that were thoughts.
    pub reasoning_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
    }
}

/// What went wrong, as far as anybody can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// The key was refused, or is missing.
    Auth,
    /// Too many requests; try again later.
    RateLimited,
    /// The provider is overloaded or broken (5xx).
    Overloaded,
    /// The conversation does not fit.
    ContextOverflow,
    /// The request was refused as it is; the same again will be too.
    InvalidRequest,
    /// The provider's filter refused.
    ContentFilter,
    /// No connection, or it broke.
    Transport,
    /// The stream ended before the answer did.
    Truncated,
    /// The provider answered something that is not its protocol.
    Protocol,
    /// The deadline passed.
    Deadline,
    /// We cancelled.
    Cancelled,
}

/// A model turn that failed. The message holds no key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{model}: {message}")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    /// Which model, as `provider/model`.
    pub model: String,
    /// What happened and, where it can be said, what to do.
    pub message: String,
    /// How long the provider asks us to wait.
    pub retry_after: Option<Duration>,
}

impl ModelErrorKind {
    /// A bounded name for logs and metric labels.
    pub const fn category(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::ContextOverflow => "context_overflow",
            Self::InvalidRequest => "invalid_request",
            Self::ContentFilter => "content_filter",
            Self::Transport => "transport",
            Self::Truncated => "truncated",
            Self::Protocol => "protocol",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
        }
    }
}
