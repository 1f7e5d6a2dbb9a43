//! Errors of MongoDB as errors of the store.

use std::fmt::Display;

use mongodb::error::{
    Error, ErrorKind, TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT, WriteFailure,
};

use super::BACKEND;
use crate::commit_rules::Refusal;
use crate::error::StoreError;

/// What a standalone server lacks.
pub(super) const STANDALONE: &str = "the server is a standalone server, and commits need the transactions of a replica set: start it with --replSet and run rs.initiate(), also for one server";

/// Most characters of an error of the driver, which may describe every member of a cluster.
const LONGEST: usize = 400;

/// Why a step of a transaction did not end.
#[derive(Debug)]
pub(super) enum Failure {
    Driver(Error),
    Store(StoreError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Store(refusal.by(BACKEND))
    }
}

pub(super) fn unavailable(reason: impl Display) -> StoreError {
    StoreError::Unavailable { backend: BACKEND, reason: reason.to_string() }
}

pub(super) fn corrupt(what: impl Into<String>) -> StoreError {
    let reason =
        "another program writes the same database, or this program is older than the data".to_owned();
    StoreError::Corrupt { what: what.into(), reason }
}

/// Whether the whole transaction is to be tried again: it conflicted with another one, or the connection was lost.
pub(super) fn is_conflict(error: &Error) -> bool {
    error.contains_label(TRANSIENT_TRANSACTION_ERROR) || code(error) == Some(11000)
}

/// Whether the transaction may be committed, and the same command tells.
pub(super) fn is_commit_unknown(error: &Error) -> bool {
    error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT)
}

pub(super) fn code(error: &Error) -> Option<i32> {
    match &*error.kind {
        ErrorKind::Command(command) => Some(command.code),
        ErrorKind::Write(WriteFailure::WriteError(write)) => Some(write.code),
        ErrorKind::Write(WriteFailure::WriteConcernError(concern)) => Some(concern.code),
        ErrorKind::InsertMany(insert) => {
            let write = insert.write_errors.as_ref().and_then(|errors| errors.first());
            let concern = insert.write_concern_error.as_ref();
            write.map(|error| error.code).or_else(|| concern.map(|error| error.code))
        }
        _ => None,
    }
}

pub(super) fn translate(servers: &str, action: &'static str, error: &Error) -> StoreError {
    let mut reason = format!("{servers}: {}", text(error));
    if let Some(hint) = hint(error) {
        reason = format!("{reason}; {hint}");
    } else if code(error).is_some() {
        return StoreError::Failed { backend: BACKEND, action, reason };
    }
    unavailable(reason)
}

/// What the driver says, without the debug form of its values.
fn text(error: &Error) -> String {
    let text = match &*error.kind {
        ErrorKind::Write(WriteFailure::WriteError(write)) => write.message.clone(),
        ErrorKind::Write(WriteFailure::WriteConcernError(concern)) => concern.message.clone(),
        ErrorKind::InsertMany(insert) => {
            let first = insert.write_errors.as_ref().and_then(|errors| errors.first());
            first.map_or_else(|| "the server refused documents".to_owned(), |error| error.message.clone())
        }
        kind => kind.to_string(),
    };
    text.chars().take(LONGEST).collect()
}

/// What an administrator does about an error that another attempt alone does not solve.
fn hint(error: &Error) -> Option<&'static str> {
    if matches!(&*error.kind, ErrorKind::Authentication { .. }) {
        return Some("check the user and the password in the URI");
    }
    Some(match code(error)? {
        13 => "the user needs the role readWrite on the database",
        18 | 8000 => "check the user and the password in the URI",
        20 | 263 => STANDALONE,
        64 | 79 | 100 => "too few members of the replica set are available to confirm a write",
        189 | 10107 | 11602 | 13435 | 13436 => "the replica set has no primary yet",
        14031 => "the server has too little disk space",
        _ => return None,
    })
}
