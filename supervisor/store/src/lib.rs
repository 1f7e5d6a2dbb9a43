//! Persistence of conversations, tasks and event logs.
//!
//! The backends: [`MemoryStore`], which loses its data with the process, [`SqliteStore`], a single file, and servers:
//! [`RedisStore`], and `MongodbStore` with the feature `mongodb`. A [`Commit`] is encoded by its caller, so that the part that all runs share (a lock, a writer thread or a connection)
//! only copies bytes.

// The samples name this crate as other test programs do.
#[cfg(test)]
extern crate self as caipe_store;

mod backend;
mod commit_order;
mod commit_rules;
mod control;
mod conversation;
mod encrypted;
mod error;
mod event_chunk;
mod facts;
mod follower;
mod json;
mod lease;
mod live;
mod live_exchange;
mod memory;
#[cfg(feature = "mongodb")]
mod mongodb;
mod notifier;
mod push;
mod redis;
mod restrictions;
#[cfg(test)]
#[path = "../tests/samples/mod.rs"]
mod samples;
mod sqlite;
mod transfer;
mod types;
mod unique;

pub use backend::Store;
pub use commit_rules::{MAX_ID_BYTES, MAX_OUTBOX_BYTES};
pub use control::{Control, ControlMessage, MAX_CONTROL_BYTES, MAX_CONTROLS};
pub use conversation::{ConversationChange, ListChange, SavedConversation, StoredConversation};
pub use encrypted::{EncryptedStore, Keyring, refuse_encrypted, rotate};
pub use error::StoreError;
pub use event_chunk::{EventChunk, LoggedEvent};
pub use facts::{FactChange, FactRecord, FactStore, MAX_FACT_BYTES};
pub use follower::Follower;
pub use json::MAX_VALUE_BYTES;
pub use live::LiveEvents;
pub use memory::MemoryStore;
#[cfg(feature = "mongodb")]
pub use mongodb::{MongodbOptions, MongodbStore};
pub use notifier::{Changes, Notifier, Topic};
pub use push::{MAX_PUSH_BYTES, PushRecord};
pub use redis::{Connection as RedisConnection, RedisOptions, RedisStore};
pub use sqlite::SqliteStore;
pub use transfer::{
    ConversationRecord, EventsRecord, ExportFile, Exported, FactsRecord, IdPage, ImportBatch, ImportProgress,
    Imported, OwnerRecord, Record, RecordKind, RecordSource, StoreReader, TaskContent, Transfer,
    TransferError, Verified, export, import, refuse_unfinished, verify,
};
pub use types::{
    Commit, Fence, Lease, LeaseTerm, OutboxEntry, Pruned, Retention, TaskFilter, TaskPhase, TaskPlace,
    TaskRecord, TaskReply,
};
