//! Serves an [`Agent`] over JSON-RPC and HTTP+JSON, with SSE, in both versions at one URL.

mod agent;
mod body;
mod cards;
mod cursor;
mod framing;
mod headers;
mod jsonrpc;
mod log;
mod modes;
mod operation;
mod projection;
mod rest;
mod router;
mod stream;

pub use agent::{Agent, CallContext, Principal, Sent, Subscription};
pub use cursor::Cursor;
pub use log::{LogError, LoggedEvent, TaskLog};
pub use router::{ServerOptions, router};
