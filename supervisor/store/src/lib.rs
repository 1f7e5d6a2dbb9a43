//! Persistence of conversations, tasks and event logs.
//!
//! Two backends: [`MemoryStore`], which loses its data with the process, and [`SqliteStore`], a single file. The caller of
//! a [`Commit`] serialises and checks it, so that the part that all runs share (a lock or a writer thread) only copies bytes.

// The samples name this crate as other test programs do.
#[cfg(test)]
extern crate self as caipe_store;

mod backend;
mod decode;
mod memory;
mod prepared_commit;
mod push;
#[cfg(test)]
#[path = "../tests/samples/mod.rs"]
mod samples;
mod sqlite;
mod types;

pub use backend::Store;
pub use memory::MemoryStore;
pub use prepared_commit::{MAX_ID_BYTES, MAX_VALUE_BYTES};
pub use push::{MAX_PUSH_BYTES, PushRecord};
pub use sqlite::SqliteStore;
pub use types::{
    Commit, LoggedEvent, Pruned, Retention, Saved, Snapshot, StoreError, TaskFilter, TaskPhase, TaskPlace,
    TaskRecord, TaskReply,
};
