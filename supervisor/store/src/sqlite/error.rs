//! SQLite's failures as ours. Each names the file, since that is what an operator can act on.

use std::fmt::Display;
use std::path::Path;

use rusqlite::ErrorCode;

use super::BACKEND;
use crate::types::StoreError;
use crate::write::Refusal;

/// What can go wrong below the store's surface: SQLite itself, or what was found in the file.
#[derive(Debug)]
pub(super) enum Failure {
    /// SQLite said no.
    Sqlite(rusqlite::Error),
    /// An error that is worded already.
    Ours(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Ours(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Ours(refusal.by(BACKEND))
    }
}

impl Failure {
    /// The same for those outside, told of this file.
    pub(super) fn at(self, path: &Path, action: &'static str) -> StoreError {
        match self {
            Self::Ours(error) => error,
            Self::Sqlite(error) => translate(path, action, &error),
        }
    }
}

pub(super) fn translate(path: &Path, action: &'static str, error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => corrupt(path, error),
        Some(ErrorCode::CannotOpen | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            unavailable(path, error)
        }
        _ => StoreError::Failed { backend: BACKEND, action, reason: format!("{}: {error}", path.display()) },
    }
}

pub(super) fn in_use(path: &Path) -> StoreError {
    StoreError::InUse { backend: BACKEND, place: path.display().to_string() }
}

pub(super) fn unavailable(path: &Path, reason: impl Display) -> StoreError {
    StoreError::Unavailable { backend: BACKEND, reason: format!("{}: {reason}", path.display()) }
}

pub(super) fn corrupt(path: &Path, reason: impl Display) -> StoreError {
    let reason =
        format!("{reason}; restore the file from a backup, or move it away to begin with an empty one");
    StoreError::Corrupt { what: path.display().to_string(), reason }
}
