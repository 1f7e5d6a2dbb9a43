//! Serves an [`Agent`] over JSON-RPC and HTTP+JSON, with SSE, in both versions at one URL.

mod agent;
mod body;
mod call;
mod cards;
mod encoding;
mod framing;
mod headers;
mod input_media_types;
mod json_limits;
mod jsonrpc;
mod log_entry;
mod operation;
mod projection;
mod push;
mod request;
mod rest;
mod retained_events;
mod router;
mod state;
mod stream;
mod task_log;
mod text_piece;

#[cfg(feature = "fuzzing")]
pub(crate) use jsonrpc::fuzz;

pub use agent::Agent;
pub use call::{CallContext, Principal, Sent, Subscription};
pub use log_entry::LoggedEvent;
pub use push::{MemoryPushStore, PushOptions, PushStore, PushStoreError, Pushes, Registration};
pub use retained_events::{LogBounds, LogBudget};
pub use router::{normalize_paths, router};
pub use state::ServerOptions;
pub use task_log::{Addition, Cursor, LogError, TaskLog};
pub use text_piece::TextTemplate;
