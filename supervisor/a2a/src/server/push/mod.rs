//! Push notifications: the updates of a task, posted to a URL.
//!
//! [`Pushes`] stores the configurations in a [`PushStore`]. A worker per configuration reads the task's log with a cursor,
//! as a stream does: a slow receiver does not block others, and progress survives a restart.

mod jobs;
mod operations;
mod payload;
mod permits;
mod post;
mod pushes;
mod retry;
mod store;
mod validate;
mod worker;

pub(super) use operations::{create, delete, follow_message, get, list};
pub use pushes::{PushOptions, Pushes};
pub use store::{MemoryPushStore, PushStore, PushStoreError, Registration};
pub(super) use validate::inline_prefix;
