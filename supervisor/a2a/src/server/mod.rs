//! Serves an [`Agent`] over JSON-RPC and SSE, in both versions at one URL.

mod agent;
mod cursor;
mod log;
mod projection;

pub use agent::{Agent, CallContext, Subscription};
pub use cursor::Cursor;
pub use log::{LogError, LoggedEvent, TaskLog};
