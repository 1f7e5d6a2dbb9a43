//! A range of one log as text: the content of a row of the events, and of an entry of the shared log.

use std::fmt::Write as _;

use caipe_engine::RunEvent;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::decode::{decode, extend};
use crate::prepared_commit::Chunk;
use crate::types::{LoggedEvent, StoreError};

/// Consecutive events of one task, as JSON text that is parsed only when a reader needs the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventRange {
    pub(super) first: u64,
    pub(super) last: u64,
    /// `[microseconds,[event,...]]` for each commit, with commas between them.
    chunks: String,
}

impl EventRange {
    /// The events of one commit.
    pub(super) fn of(chunk: &Chunk) -> Self {
        let chunks = format!("[{},{}]", chunk.at.as_microsecond(), chunk.json);
        Self { first: chunk.first, last: chunk.last, chunks }
    }

    /// Adds the range that follows this one.
    pub(super) fn append(&mut self, next: &Self) {
        self.chunks.push(',');
        self.last = next.last;
        self.chunks.push_str(&next.chunks);
    }

    /// The size in bytes.
    pub(super) const fn len(&self) -> usize {
        self.chunks.len()
    }
}

/// A row of the events, of consecutive ranges: the numbers of its first and its last event, and its text. `None` if
/// there are no ranges.
pub(super) fn event_row<'a>(ranges: impl IntoIterator<Item = &'a EventRange>) -> Option<(u64, u64, String)> {
    let mut ranges = ranges.into_iter();
    let EventRange { first, last, chunks } = ranges.next()?;
    let mut last = *last;
    let mut row = ["[", chunks].concat();
    for next in ranges {
        row.push(',');
        row.push_str(&next.chunks);
        last = next.last;
    }
    row.push(']');
    Some((*first, last, row))
}

/// Adds the events of a row that come after `after`, until there are `limit`.
pub(super) fn read_row(
    (task, first, row): (&str, u64, &str),
    events: &mut Vec<LoggedEvent>,
    after: u64,
    limit: usize,
) -> Result<(), StoreError> {
    let chunks: Vec<(i64, Vec<RunEvent>)> =
        decode(|| format!("the events of task {task:?} from {first} on"), row)?;
    let dated =
        chunks.into_iter().map(|(at, chunk)| (Timestamp::from_microsecond(at).unwrap_or_default(), chunk));
    extend(events, first, dated, after, limit);
    Ok(())
}

/// A row of the shared log: `[[task,first,last,[chunk,...]],...]`. `None` if there are no ranges.
pub(super) fn shared_log_row<'a>(
    logs: impl IntoIterator<Item = (&'a str, &'a EventRange)>,
) -> Option<String> {
    let mut row = String::new();
    for (task, EventRange { first, last, chunks }) in logs {
        let (comma, task) = (if row.is_empty() { '[' } else { ',' }, serde_json::Value::from(task));
        // Writing to a string cannot fail.
        let _ = write!(row, "{comma}[{task},{first},{last},[{chunks}]]");
    }
    (!row.is_empty()).then(|| row + "]")
}

/// The tasks and ranges of a row of the shared log, in the order in which they were written.
pub(super) fn entries(row: &str) -> Result<Vec<(String, EventRange)>, StoreError> {
    #[derive(Deserialize)]
    struct Entry<'a>(String, u64, u64, #[serde(borrow)] &'a RawValue);
    let corrupt = |reason: String| StoreError::Corrupt { what: "the shared log".to_owned(), reason };
    let entries: Vec<Entry<'_>> = serde_json::from_str(row).map_err(|error| corrupt(error.to_string()))?;
    let range = |Entry(task, first, last, chunks)| {
        let text = chunks.get().strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let chunks =
            text.ok_or_else(|| corrupt(format!("events {first} to {last} of task {task:?} are no list")))?;
        Ok((task, EventRange { first, last, chunks: chunks.to_owned() }))
    };
    entries.into_iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepared_commit::Write;
    use crate::samples::logged;

    fn chunk(task: &str, first: u64, count: u64) -> Chunk {
        Write::of(logged(task, first, count), Timestamp::UNIX_EPOCH).unwrap().events.unwrap()
    }

    fn numbers(range: &EventRange, after: u64, limit: usize) -> Vec<u64> {
        let mut events = Vec::new();
        let (first, _, row) = event_row([range]).unwrap();
        read_row(("t", first, &row), &mut events, after, limit).unwrap();
        events.into_iter().map(|logged| logged.seq).collect()
    }

    #[test]
    fn a_range_is_read_from_anywhere() {
        let mut range = EventRange::of(&chunk("t", 5, 2));
        range.append(&EventRange::of(&chunk("t", 7, 1)));
        let next = EventRange::of(&chunk("t", 8, 3));
        let (first, last, row) = event_row([&range, &next]).unwrap();
        range.append(&next);
        assert_eq!((first, last, row), event_row([&range]).unwrap());
        assert_eq!((range.first, range.last), (5, 10));
        assert_eq!(numbers(&range, 0, 100), [5, 6, 7, 8, 9, 10]);
        assert_eq!(numbers(&range, 6, 3), [7, 8, 9]);
        assert_eq!(numbers(&range, 10, 3), Vec::<u64>::new());
    }

    #[test]
    fn entries_come_back_as_they_were() {
        let tasks = ["plain", "\"quoted\" \\ \u{0} 会話"];
        let ranges = tasks.map(|task| EventRange::of(&chunk(task, 3, 2)));
        let row = shared_log_row(tasks.into_iter().zip(&ranges)).unwrap();
        let found = entries(&row).unwrap();
        let wanted: Vec<_> = tasks.iter().map(ToString::to_string).zip(ranges).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn nothing_is_no_row() {
        assert_eq!((shared_log_row([]), event_row([])), (None, None));
    }

    #[test]
    fn a_damaged_row_is_reported() {
        for row in ["", "[", "[[\"t\",1,2]]", "[[\"t\",1,2,{}]]", "[[\"t\",-1,2,[]]]"] {
            assert_eq!(entries(row).unwrap_err().category(), "corrupt", "{row}");
        }
    }
}
