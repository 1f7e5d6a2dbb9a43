//! Copies of whole stores: to a file, from a file, and their comparison.
//!
//! A copy has every stored value byte for byte. It has no leases: the runs under way continue wherever the copy is served.

mod error;
mod export;
mod file;
mod import;
mod reader;
mod record;
mod verify;

use async_trait::async_trait;

use crate::backend::Store;
use crate::error::StoreError;
use crate::event_chunk::EventChunk;

pub use error::TransferError;
pub use export::export;
pub(crate) use file::ExportWriter;
pub use file::{ExportFile, Exported};
pub use import::{Imported, import};
pub use reader::{RecordSource, StoreReader};
pub use record::{ConversationRecord, EventsRecord, FactsRecord, OwnerRecord, Record, TaskContent};
pub(crate) use record::{StoredControl, StoredOutboxEntry, StoredPush};
pub use verify::{Verified, verify};

/// What a list of ids names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    Conversation,
    Task,
    /// A person about whom there are facts, perhaps only expired ones.
    FactOwner,
}

impl RecordKind {
    /// All kinds, in the order of an export.
    pub(crate) const ALL: [Self; 3] = [Self::Conversation, Self::Task, Self::FactOwner];
}

/// A page of ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdPage {
    pub ids: Vec<String>,
    /// Where the next page begins; `None` after the last one. Only the backend that returned it can read it.
    pub next: Option<String>,
}

/// Records to add to a store in one transaction.
#[derive(Debug, Clone, Default)]
pub struct ImportBatch {
    /// The id of the export that the records are from.
    pub export: String,
    /// The number of records of the export before this batch.
    pub begin: u64,
    pub records: Vec<Record>,
}

/// An import that has begun and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportProgress {
    /// The id of the export.
    pub export: String,
    /// How many of its records are in the store.
    pub records: u64,
}

/// A store that can be copied. No process serves it in the meantime.
#[async_trait]
pub trait Transfer: Store {
    /// Whether another process serves the store. A backend that only one process can open is never in use.
    async fn is_in_use(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// The ids of all conversations, tasks or owners of facts, page by page, in the order of the backend. At most `limit` in a page.
    async fn list_ids(
        &self,
        kind: RecordKind,
        after: Option<&str>,
        limit: usize,
    ) -> Result<IdPage, StoreError>;

    /// A conversation with everything that is stored about it.
    async fn export_conversation(&self, context: &str) -> Result<Option<ConversationRecord>, StoreError>;

    /// A task with everything that is stored about it, without its events.
    async fn export_task(&self, task: &str) -> Result<Option<TaskContent>, StoreError>;

    /// The chunks of a task's log whose last number is above `after`, in order, at most about `limit`.
    async fn export_events(
        &self,
        task: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<EventChunk>, StoreError>;

    /// The import that has not ended. Nothing serves the store until it has.
    async fn unfinished_import(&self) -> Result<Option<ImportProgress>, StoreError>;

    /// Marks the store as one with an unfinished import.
    async fn begin_import(&self, export: &str) -> Result<(), StoreError>;

    /// Adds records, unless the store has a conversation, a task or a fact of the same owner with the same id. The events of a task
    /// follow it. Returns the number of conversations, tasks and facts that were left as they are.
    ///
    /// Fails if the store has another number of records of the export than the batch expects.
    async fn import(&self, batch: ImportBatch) -> Result<u64, StoreError>;

    /// Removes the mark of [`Self::begin_import`].
    async fn finish_import(&self) -> Result<(), StoreError>;
}

/// The error of a batch that does not follow the records that are there.
pub(crate) fn out_of_step(backend: &'static str) -> StoreError {
    let reason = "another import into this store is running, or has ended; run one import at a time";
    StoreError::Refused { backend, reason: reason.to_owned() }
}

/// An error for a store whose import has not ended: nothing may serve it.
pub async fn refuse_unfinished(store: &dyn Transfer) -> Result<(), StoreError> {
    match store.unfinished_import().await? {
        None => Ok(()),
        Some(ImportProgress { export, records }) => Err(StoreError::Unavailable {
            backend: store.backend(),
            reason: format!(
                "an import of export {export} has ended early, after {records} records: run `store import` again with the same file"
            ),
        }),
    }
}
