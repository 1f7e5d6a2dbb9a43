//! Stored values as JSON.

use serde::{Deserialize, Serialize};

use crate::error::StoreError;

/// Most bytes of one serialised value: a run, a message, a task's record, one commit's events.
pub const MAX_VALUE_BYTES: usize = 64 << 20;

/// How an encrypted value begins, before the id of its key and a dot. JSON never begins so.
pub(crate) const ENCRYPTED: &str = "enc1.";

/// Most levels of nesting of a stored value. Incoming values have at most 128; a record or a nested run adds a few.
const MAX_DEPTH: usize = 256;

pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Encode(error.to_string()))
}

pub(crate) fn sized(what: impl FnOnce() -> String, json: String) -> Result<String, StoreError> {
    if json.len() <= MAX_VALUE_BYTES {
        return Ok(json);
    }
    Err(StoreError::TooLarge { what: what(), bytes: json.len(), limit: MAX_VALUE_BYTES })
}

/// The id of the key of an encrypted value; `None` if it is not encrypted.
pub(crate) fn key_of(value: &str) -> Option<&str> {
    value.strip_prefix(ENCRYPTED)?.split('.').next()
}

/// The limit of a value in the store: an encrypted one is larger than the value that was checked before.
pub(crate) fn limit_of(value: &str, limit: usize) -> usize {
    if key_of(value).is_some() { 2 * limit } else { limit }
}

/// Parses a stored value; `what` names it in the error.
pub(crate) fn decode<'a, T: Deserialize<'a>>(
    what: impl FnOnce() -> String,
    json: &'a str,
) -> Result<T, StoreError> {
    serde_json::from_str(json)
        .or_else(
            |error| if (128..=MAX_DEPTH).contains(&depth(json)) { decode_deep(json) } else { Err(error) },
        )
        .map_err(|error| StoreError::Corrupt { what: what(), reason: reason(json, &error) })
}

fn reason(json: &str, error: &serde_json::Error) -> String {
    match key_of(json) {
        Some(id) => format!("it is encrypted with the key {id:?}, and no keys of the store are given"),
        None => error.to_string(),
    }
}

fn decode_deep<'a, T: Deserialize<'a>>(json: &'a str) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_str(json);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end().map(|()| value)
}

/// The levels of nested arrays and objects.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
