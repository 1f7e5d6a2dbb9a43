//! Serves an [`Agent`] over JSON-RPC and HTTP+JSON, with SSE, in both versions at one URL.

mod agent;
mod body;
mod cards;
mod cursor;
mod framing;
mod headers;
mod jsonrpc;
mod log;
mod logged;
mod modes;
mod operation;
mod projection;
mod push;
mod rest;
mod router;
mod stream;
mod window;

#[cfg(feature = "fuzzing")]
pub(crate) use jsonrpc::fuzz;

pub use agent::{Agent, CallContext, Principal, Sent, Subscription};
pub use cursor::Cursor;
pub use log::{LogError, TaskLog};
pub use logged::LoggedEvent;
pub use push::{MemoryPushStore, PushCounts, PushOptions, PushStore, PushStoreError, Pushes, Registration};
pub use router::{ServerOptions, normalize_paths, router};
pub use window::LogBounds;
