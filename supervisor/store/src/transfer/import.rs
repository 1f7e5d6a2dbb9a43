//! Adds an export to a store.

use super::error::TransferError;
use super::file::{Counts, ExportFile};
use super::reader::RecordSource as _;
use super::{ImportBatch, RecordKind, Transfer};
use crate::error::StoreError;

/// Most records and bytes of one transaction.
const MOST_RECORDS: usize = 256;
const MOST_BYTES: usize = 4 << 20;

/// What an import has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Imported {
    /// How many records an earlier, interrupted import had added.
    pub continued_after: u64,
    /// The conversations, tasks and facts that were added or left, by this import and not by an earlier one.
    pub conversations: u64,
    pub tasks: u64,
    pub facts: u64,
    /// How many of them the store had already.
    pub left: u64,
}

/// Adds everything that a file has. An import that was interrupted continues where it ended, if the file is the same. With
/// `merge` the store may have content, which is left as it is.
///
/// # Errors
/// When a process serves the store, it has other content, or a read or a write fails.
pub async fn import(
    mut file: ExportFile,
    store: &dyn Transfer,
    merge: bool,
) -> Result<Imported, TransferError> {
    let begin = begin(&file, store, merge).await?;
    let (mut done, mut counts) =
        (Imported { continued_after: begin, ..Imported::default() }, Counts::default());
    for _ in 0..begin {
        file.next().await?;
    }
    let mut batch = ImportBatch { export: file.id().to_owned(), begin, records: Vec::new() };
    let mut bytes = 0;
    loop {
        let record = file.next().await?;
        let is_last = record.is_none();
        if let Some(record) = record {
            counts.add(&record);
            bytes += record.size();
            batch.records.push(record);
        }
        if is_last || bytes >= MOST_BYTES || batch.records.len() >= MOST_RECORDS {
            refuse_in_use(store).await?;
            let next = ImportBatch {
                export: batch.export.clone(),
                begin: batch.begin + batch.records.len() as u64,
                records: Vec::new(),
            };
            done.left += store.import(std::mem::replace(&mut batch, next)).await?;
            bytes = 0;
        }
        if is_last {
            store.finish_import().await?;
            let Counts { conversations, tasks, facts, events: _ } = counts;
            return Ok(Imported { conversations, tasks, facts, ..done });
        }
    }
}

/// Marks the store, and returns how many records of the file it has.
async fn begin(file: &ExportFile, store: &dyn Transfer, merge: bool) -> Result<u64, TransferError> {
    refuse_in_use(store).await?;
    let backend = store.backend();
    match store.unfinished_import().await? {
        Some(progress) if progress.export == file.id() => return Ok(progress.records),
        Some(progress) => return Err(TransferError::OtherImport { backend, export: progress.export }),
        None if !merge && !is_empty(store).await? => return Err(TransferError::NotEmpty { backend }),
        None => {}
    }
    store.begin_import(file.id()).await?;
    Ok(0)
}

async fn is_empty(store: &dyn Transfer) -> Result<bool, StoreError> {
    for kind in RecordKind::ALL {
        if !store.list_ids(kind, None, 1).await?.ids.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) async fn refuse_in_use(store: &dyn Transfer) -> Result<(), TransferError> {
    if store.is_in_use().await? {
        return Err(TransferError::InUse { backend: store.backend() });
    }
    Ok(())
}
