//! Parsing stored values.

use caipe_engine::RunEvent;
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use crate::types::{LoggedEvent, StoreError};

/// Most levels of nesting of a stored value. Incoming values have at most 128; a record or a nested run adds a few.
const MAX_DEPTH: usize = 256;

/// Parses a stored value; `what` names it in the error.
pub(crate) fn decode<T: DeserializeOwned>(
    what: impl FnOnce() -> String,
    json: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(json)
        .or_else(
            |error| if (128..=MAX_DEPTH).contains(&depth(json)) { decode_deep(json) } else { Err(error) },
        )
        .map_err(|error| StoreError::Corrupt { what: what(), reason: error.to_string() })
}

fn decode_deep<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
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

/// Adds the events of consecutive commits, of which the first event has the number `first`: those after `after`, until
/// `events` has `limit`.
pub(crate) fn extend(
    events: &mut Vec<LoggedEvent>,
    first: u64,
    commits: impl IntoIterator<Item = (Timestamp, Vec<RunEvent>)>,
    after: u64,
    limit: usize,
) {
    let room = limit.saturating_sub(events.len());
    let dated = commits.into_iter().flat_map(|(at, chunk)| chunk.into_iter().map(move |event| (at, event)));
    let numbered = (first..).zip(dated).map(|(seq, (at, event))| LoggedEvent { seq, at, event });
    events.extend(numbered.filter(|logged| logged.seq > after).take(room));
}
