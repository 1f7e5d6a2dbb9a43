//! Writes a store to a file.

use std::io::Write;
use std::sync::Arc;

use super::Transfer;
use super::error::TransferError;
use super::file::{ExportWriter, Exported};
use super::reader::{RecordSource as _, StoreReader};

/// Writes everything that a store has, in a form that any store can import.
///
/// # Errors
/// When a process serves the store, it has an unfinished import, or a read or a write fails.
pub async fn export(store: Arc<dyn Transfer>, to: impl Write) -> Result<Exported, TransferError> {
    super::import::refuse_in_use(&*store).await?;
    super::refuse_unfinished(&*store).await?;
    let mut writer = ExportWriter::new(to, store.backend())?;
    let mut reader = StoreReader::new(store.clone());
    while let Some(record) = reader.next().await? {
        writer.record(&record)?;
    }
    // What a supervisor changed in the meantime may be missing.
    super::import::refuse_in_use(&*store).await?;
    writer.finish()
}
