//! Language models behind one trait: [`ChatModel`].

mod chat;
mod message;

pub use chat::{
    ChatModel, ChatRequest, Completion, FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelStream, ToolSpec, Usage,
};
pub use message::{Message, Part, Role, ToolCall, ToolResult};
