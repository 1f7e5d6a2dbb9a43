//! The trait of language models, its requests, events and errors.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::message::Message;

/// A language model that streams its answers.
pub trait ChatModel: Send + Sync + fmt::Debug {
    /// The name in logs and errors, as `provider/model`.
    fn name(&self) -> &str;

    /// Starts one model turn.
    ///
    /// The stream ends with exactly one [`ModelEvent::Finish`] or one error, and nothing follows either.
    /// Cancelling the token, or dropping the stream, closes the connection to the provider.
    fn stream(&self, request: ChatRequest, cancel: CancellationToken) -> ModelStream;
}

/// Waits for the whole of one model turn.
///
/// # Errors
/// As the stream of [`ChatModel::stream`].
pub async fn complete(
    model: &dyn ChatModel,
    request: ChatRequest,
    cancel: CancellationToken,
) -> Result<Completion, ModelError> {
    let mut stream = model.stream(request, cancel);
    while let Some(event) = stream.next().await {
        if let ModelEvent::Finish(completion) = event? {
            return Ok(completion);
        }
    }
    let message = "the model's stream ended without an answer".to_owned();
    Err(ModelError {
        kind: ModelErrorKind::Truncated,
        model: model.name().to_owned(),
        message,
        retry_after: None,
    })
}

/// The pieces of one model turn.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// A request to a model. Cheap to clone, because clones share the conversation.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The system prompt.
    pub system: Arc<str>,
    /// The conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The tools that the model may call, in a stable order for the prompt caches.
    pub tools: Arc<[ToolSpec]>,
    /// Most tokens of the answer; `None` for the provider's default.
    pub max_output_tokens: Option<u32>,
    /// The sampling temperature; `None` for the provider's default.
    pub temperature: Option<f64>,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name, `[A-Za-z0-9_-]{1,64}` for most providers.
    pub name: String,
    /// The purpose, for the model.
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
        id: String,
        name: String,
    },
    /// The next piece of a call's arguments.
    ToolArgsDelta {
        id: String,
        delta: String,
    },
    /// The turn is complete.
    Finish(Completion),
}

/// A complete model turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// The whole assistant message.
    pub message: Message,
    pub reason: FinishReason,
    pub usage: Usage,
    /// The model that answered, as `provider/model`; after a fallback not the first one.
    pub model: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    /// The model waits for tool results.
    ToolCalls,
    /// The answer reached the output limit.
    Length,
    /// The provider's filter stopped the answer.
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

/// The kind of a failure, which decides who can act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// The key is invalid or missing.
    Auth,
    /// Too many requests; try again later.
    RateLimited,
    /// The provider is overloaded or broken (5xx).
    Overloaded,
    /// The conversation is too long.
    ContextOverflow,
    /// The provider rejects the request, and would reject it again.
    InvalidRequest,
    /// The provider's filter rejects the request.
    ContentFilter,
    /// The connection failed or broke.
    Transport,
    /// The stream ended before the answer did.
    Truncated,
    /// The response violates the provider's protocol.
    Protocol,
    /// The deadline passed.
    Deadline,
    /// The caller cancelled the call.
    Cancelled,
}

/// A failed model turn. The message contains no key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{model}: {message}")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    /// The model, as `provider/model`.
    pub model: String,
    /// What happened and, if known, what to do.
    pub message: String,
    /// The wait that the provider asks for.
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
