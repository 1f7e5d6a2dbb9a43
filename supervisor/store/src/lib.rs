//! Where conversations, tasks and event logs live.
//!
//! Two backends: [`MemoryStore`], which forgets with the process, and [`SqliteStore`], a single file. Both
//! write the same thing, a [`Commit`] that was serialised and checked where it was made, so that the part
//! that is shared by all runs, a lock or a writer thread, only ever moves bytes.

mod backend;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod decode;
mod memory;
mod push;
mod sqlite;
mod types;
mod write;

pub use backend::Store;
pub use memory::MemoryStore;
pub use push::{MAX_PUSH_BYTES, PushRecord};
pub use sqlite::SqliteStore;
pub use types::{
    Commit, LoggedEvent, Pruned, Retention, Saved, Snapshot, StoreError, TaskFilter, TaskPhase, TaskPlace,
    TaskRecord, TaskReply,
};
pub use write::{MAX_ID_BYTES, MAX_VALUE_BYTES};
