//! Values of documents.

use std::time::Duration;

use mongodb::bson::{Bson, Document};

use super::error::corrupt;
use crate::commit_rules::LogPosition;
use crate::error::StoreError;
use crate::json::decode;
use crate::types::TaskRecord;

/// Most bytes of one stored value. A document has at most 16 MiB, with its other fields.
pub(super) const MAX_DOCUMENT_BYTES: usize = 15 << 20;

/// A number as a document holds it; see [`EventChunk`](crate::EventChunk) for its bound.
pub(super) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number, 0 if it is missing.
pub(super) fn number(document: &Document, field: &str) -> Result<u64, StoreError> {
    let number = match document.get(field) {
        None | Some(Bson::Null) => Some(0),
        Some(Bson::Int32(number)) => u64::try_from(*number).ok(),
        Some(Bson::Int64(number)) => u64::try_from(*number).ok(),
        Some(_) => None,
    };
    number.ok_or_else(|| corrupt(format!("the number {field}")))
}

/// A number that may be negative, 0 if it is missing.
pub(super) fn signed(document: &Document, field: &str) -> i64 {
    match document.get(field) {
        Some(Bson::Int32(number)) => (*number).into(),
        Some(Bson::Int64(number)) => *number,
        _ => 0,
    }
}

pub(super) fn text<'a>(document: &'a Document, field: &str) -> Result<&'a str, StoreError> {
    document.get_str(field).map_err(|_| corrupt(format!("the text {field}")))
}

/// A text that may be missing.
pub(super) fn optional(document: &Document, field: &str) -> Option<String> {
    document.get_str(field).ok().map(str::to_owned)
}

/// A task's record.
pub(super) fn record(document: &Document) -> Result<TaskRecord, StoreError> {
    let id = text(document, "_id")?;
    decode(|| format!("the record of task {id:?}"), text(document, "record")?)
}

pub(super) fn position(document: &Document) -> Result<LogPosition, StoreError> {
    let number = |field| number(document, field);
    Ok(LogPosition { token: number("token")?, number: number("number")?, last: number("last")? })
}

pub(super) fn is_under_way(document: &Document) -> bool {
    matches!(document.get_str("phase"), Ok("submitted" | "working"))
}

/// At least one millisecond, so that a term is never empty.
pub(super) fn millis(duration: Duration) -> i64 {
    const LONGEST: i64 = 1 << 40;
    i64::try_from(duration.as_millis()).unwrap_or(LONGEST).clamp(1, LONGEST)
}

/// Checks the size of a value.
pub(super) fn fits(what: impl FnOnce() -> String, bytes: usize) -> Result<(), StoreError> {
    if bytes <= MAX_DOCUMENT_BYTES {
        return Ok(());
    }
    Err(StoreError::TooLarge { what: what(), bytes, limit: MAX_DOCUMENT_BYTES })
}
