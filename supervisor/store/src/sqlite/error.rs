//! Errors of SQLite as errors of the store. Each names the file, because an administrator must find it.

use std::fmt::Display;
use std::path::Path;

use rusqlite::ErrorCode;

use super::BACKEND;
use crate::commit_rules::Refusal;
use crate::error::StoreError;

/// An error of SQLite, or one that is already a [`StoreError`].
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Store(refusal.by(BACKEND))
    }
}

impl Failure {
    /// The error for callers of the store. It names the file and the action.
    pub(super) fn at(self, path: &Path, action: &'static str) -> StoreError {
        match self {
            Self::Store(error) => error,
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
