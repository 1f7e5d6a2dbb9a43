//! Push notifications: who wants to be told of a task by a call to a web address, and the telling.
//!
//! [`Pushes`] keeps the configurations in a [`PushStore`]. What is to be told is read from the task's log by a
//! cursor, as a stream is: a slow receiver holds nobody back, and how far each one is survives a restart.

mod admit;
mod counts;
mod desk;
mod lanes;
mod operations;
mod payload;
mod policy;
mod post;
mod pushes;
mod store;
mod worker;

pub(super) use admit::inline_prefix;
pub use counts::PushCounts;
pub(super) use operations::{begun, create, delete, get, list};
pub use pushes::{PushOptions, Pushes};
pub use store::{MemoryPushStore, PushStore, PushStoreError, Registration};
