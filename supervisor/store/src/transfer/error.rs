//! The errors of copies.

use std::io;

use crate::error::StoreError;

/// Why an export cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("failed to write the export: {0}")]
    Write(io::Error),
    #[error("failed to read {file}: {reason}")]
    Read { file: String, reason: String },
    #[error(
        "the {backend} store is in use by a running supervisor: stop it first, with `replicas: 0` in a cluster"
    )]
    InUse { backend: &'static str },
    #[error(
        "the {backend} store is not empty: choose an empty one, or give --merge to add what it does not have"
    )]
    NotEmpty { backend: &'static str },
    #[error(
        "the {backend} store has an unfinished import of another export, {export}: finish that one first, or choose an empty store"
    )]
    OtherImport { backend: &'static str, export: String },
}
