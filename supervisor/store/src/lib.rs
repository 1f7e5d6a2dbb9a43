//! Persistence of conversations, tasks and event logs.
//!
//! Two backends: [`MemoryStore`], which loses its data with the process, and [`SqliteStore`], a single file. A [`Commit`] is
//! encoded by its caller, so that the part that all runs share (a lock or a writer thread) only copies bytes.

// The samples name this crate as other test programs do.
#[cfg(test)]
extern crate self as caipe_store;

mod backend;
mod commit_rules;
mod conversation;
mod error;
mod event_chunk;
mod json;
mod memory;
mod push;
#[cfg(test)]
#[path = "../tests/samples/mod.rs"]
mod samples;
mod sqlite;
mod types;

pub use backend::Store;
pub use commit_rules::MAX_ID_BYTES;
pub use conversation::{ConversationChange, ListChange, SavedConversation, StoredConversation};
pub use error::StoreError;
pub use event_chunk::{EventChunk, LoggedEvent};
pub use json::MAX_VALUE_BYTES;
pub use memory::MemoryStore;
pub use push::{MAX_PUSH_BYTES, PushRecord};
pub use sqlite::SqliteStore;
pub use types::{
    Commit, Fence, Lease, Pruned, Retention, TaskFilter, TaskPhase, TaskPlace, TaskRecord, TaskReply,
};
