//! Push notifications: the updates of a task, posted to a URL.
//!
//! [`Pushes`] stores the configurations in a [`PushStore`]. A worker per configuration reads the task's log with a cursor,
//! as a stream does: a slow receiver does not block others, and progress survives a restart.

mod attempt;
mod concurrency;
mod jobs;
mod operations;
mod payload;
mod retry;
mod service;
mod store;
mod validate;
mod worker;

pub(super) use operations::{create, delete, follow_message, get, list};
pub use service::{PushOptions, Pushes};
pub use store::{MemoryPushStore, PushStore, PushStoreError, Registration};
pub(super) use validate::inline_prefix;
