//! Language models behind one trait: [`ChatModel`].
//!
//! [`ModelSettings`] say which model, [`connect`] makes it. What comes back answers in a stream of
//! [`ModelEvent`]s, tries again and turns to the next model while nothing was shown yet, keeps its deadlines, and
//! fails with a [`ModelError`] whose kind says who can act on it. [`Scripted`] is a model that needs no provider.
//!
//! No message of this crate holds a key. The client library underneath logs what providers answer, word for word,
//! so the program that sets up logging switches its target off: `genai=off`.

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
    ToolSpec, Usage,
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
