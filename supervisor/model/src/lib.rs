//! Language models behind one trait: [`ChatModel`].
//!
//! [`connect`] makes a model from [`ModelSettings`]. The model answers with a stream of [`ModelEvent`]s. It retries, and
//! falls back to the next model, until something was shown. It has deadlines, and fails with a [`ModelError`].
//! [`Scripted`] is a model that needs no provider.
//!
//! No message of this crate contains a key. The client library logs the responses of providers, so the program that
//! configures logging must disable its target: `genai=off`.

mod chat;
mod classify;
mod genai_client;
mod message;
mod providers;
mod redact;
mod retry;
mod scripted;
mod text;
mod timeouts;

pub use chat::{
    ChatModel, ChatRequest, Completion, FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelStream,
    ToolSpec, Usage, complete,
};
pub use classify::{Failure, Subject, classify, header_wait};
pub use message::{Message, Part, Role, ToolCall, ToolResult};
pub use providers::{
    ApiKey, ConnectError, ModelChoice, ModelSettings, Provider, Scope, SettingsError, UnknownProvider,
    connect,
};
pub use retry::{Fallback, RetryPolicy, Retrying, is_providers_fault, is_transient};
pub use scripted::{ScriptError, Scripted};
pub use text::truncated;
pub use timeouts::Timeouts;
