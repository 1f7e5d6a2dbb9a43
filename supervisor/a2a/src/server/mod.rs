//! Serves an [`Agent`] over JSON-RPC and HTTP+JSON, with SSE, in both versions at one URL.

mod agent;
mod body;
mod call;
mod cards;
mod framing;
mod headers;
mod jsonrpc;
mod log;
mod logged;
mod modes;
mod operation;
mod projection;
mod push;
mod request;
mod rest;
mod router;
mod state;
mod stream;
mod window;

#[cfg(feature = "fuzzing")]
pub(crate) use jsonrpc::fuzz;

pub use agent::Agent;
pub use call::{CallContext, Principal, Sent, Subscription};
pub use log::{Cursor, LogError, TaskLog};
pub use logged::LoggedEvent;
pub use push::{MemoryPushStore, PushOptions, PushStore, PushStoreError, Pushes, Registration};
pub use router::{normalize_paths, router};
pub use state::ServerOptions;
pub use window::LogBounds;
