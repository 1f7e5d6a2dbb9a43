//! Serves an [`Agent`] over JSON-RPC and SSE, in both versions at one URL.

mod agent;
mod body;
mod cards;
mod cursor;
mod dispatch;
mod envelope;
mod log;
mod method;
mod projection;
mod router;
mod stream;

pub use agent::{Agent, CallContext, Subscription};
pub use cursor::Cursor;
pub use log::{LogError, LoggedEvent, TaskLog};
pub use router::{ServerOptions, router};
