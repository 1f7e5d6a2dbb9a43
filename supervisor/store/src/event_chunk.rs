//! Consecutive events of one commit as text. Pieces of text that follow each other are stored as one.

use std::borrow::Cow;

use caipe_engine::{EventKind, RunEvent};
use jiff::Timestamp;
use serde::Deserialize;

use crate::error::StoreError;
use crate::json::{decode, encode, sized};

/// Events with consecutive numbers, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventChunk {
    /// The number of the first event, at least 1.
    pub first: u64,
    /// The number of the last event.
    pub last: u64,
    /// `[microseconds,[event,...],[[index,length,...],...]]`: when the events happened, the events, and for each text that
    /// joins several events its index and the lengths of their texts in bytes. The last list is left out if it is empty.
    pub json: String,
}

/// An event with its place in the task's log.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedEvent {
    /// The sequence number; the first of a task is 1.
    pub seq: u64,
    /// When the event happened, to the microsecond.
    pub at: Timestamp,
    pub event: RunEvent,
}

/// A text that joins the texts of several events.
type Joined = (usize, Vec<usize>);

#[derive(Deserialize)]
struct Content {
    at: i64,
    events: Vec<RunEvent>,
    #[serde(default)]
    joined: Vec<Joined>,
}

impl EventChunk {
    /// The events of one moment, of which the first has the number `first`; `None` if there are none.
    ///
    /// # Errors
    /// When a number is out of range, or the events are too large.
    pub fn of(first: u64, at: Timestamp, events: &[RunEvent]) -> Result<Option<Self>, StoreError> {
        if events.is_empty() {
            return Ok(None);
        }
        // The columns of the stores are signed 64-bit numbers.
        let last = first.checked_add(events.len() as u64 - 1);
        let last = last.filter(|last| first > 0 && *last <= i64::MAX.unsigned_abs()).ok_or_else(|| {
            StoreError::Encode(format!("event number {first} is out of range; the first is 1"))
        })?;
        let (texts, joined) = join(events);
        let at = at.as_microsecond();
        let json = if joined.is_empty() { encode(&(at, &texts))? } else { encode(&(at, &texts, &joined))? };
        Ok(Some(Self { first, last, json: sized(|| format!("the events from {first} on"), json)? }))
    }
}

/// The events with joined texts.
fn join(events: &[RunEvent]) -> (Vec<Cow<'_, RunEvent>>, Vec<Joined>) {
    let (mut all, mut joined) = (Vec::new(), Vec::new());
    for group in events.chunk_by(is_same_text) {
        let [first, _, ..] = group else {
            all.extend(group.iter().map(Cow::Borrowed));
            continue;
        };
        let pieces: Vec<&str> = group.iter().filter_map(text_of).collect();
        joined.push((all.len(), pieces.iter().map(|piece| piece.len()).collect()));
        let mut whole = first.clone();
        if let EventKind::Text { text, .. } = &mut whole.kind {
            *text = pieces.concat();
        }
        all.push(Cow::Owned(whole));
    }
    (all, joined)
}

fn text_of(event: &RunEvent) -> Option<&str> {
    if let EventKind::Text { text, .. } = &event.kind { Some(text) } else { None }
}

fn is_same_text(one: &RunEvent, next: &RunEvent) -> bool {
    match (&one.kind, &next.kind) {
        (EventKind::Text { role, .. }, EventKind::Text { role: next_role, .. }) => {
            role == next_role && one.path == next.path
        }
        _ => false,
    }
}

/// Adds the events of a chunk, of which the first has the number `first`, that come after `after`, until `events` has
/// `limit`. Returns the number after the chunk's last.
pub(crate) fn read(
    task: &str,
    (first, json): (u64, &str),
    events: &mut Vec<LoggedEvent>,
    (after, limit): (u64, usize),
) -> Result<u64, StoreError> {
    let what = || format!("the events of task {task:?} from {first} on");
    let Content { at, events: stored, joined } = decode(what, json)?;
    let at = Timestamp::from_microsecond(at).unwrap_or_default();
    let mut joined = joined.into_iter().peekable();
    let mut seq = first;
    for (index, event) in stored.into_iter().enumerate() {
        let lengths = joined.next_if(|(at, _)| *at == index).map(|(_, lengths)| lengths);
        for event in split(event, lengths.as_deref().unwrap_or_default()) {
            if seq > after && events.len() < limit {
                events.push(LoggedEvent { seq, at, event });
            }
            seq += 1;
        }
    }
    Ok(seq)
}

/// The events that a joined text represents.
fn split(event: RunEvent, lengths: &[usize]) -> Vec<RunEvent> {
    let EventKind::Text { text, role } = &event.kind else { return vec![event] };
    if lengths.is_empty() {
        return vec![event];
    }
    let mut rest = text.as_str();
    let piece = |length: &usize| {
        let (piece, after) = rest.split_at_checked(*length).unwrap_or((rest, ""));
        rest = after;
        let kind = EventKind::Text { text: piece.to_owned(), role: *role };
        RunEvent { path: event.path.clone(), kind }
    };
    lengths.iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use caipe_engine::TextRole;
    use proptest::prelude::*;

    use super::*;

    fn event() -> impl Strategy<Value = RunEvent> {
        let role = prop_oneof![Just(TextRole::Answer), Just(TextRole::Narration)];
        let text = ("\\PC{0,6}", role).prop_map(|(text, role)| EventKind::Text { text, role });
        let kind = prop_oneof![5 => text, 1 => Just(EventKind::TextReset)];
        let path = prop::option::weighted(0.2, Just("jira".to_owned().into()));
        (kind, path).prop_map(|(kind, path)| RunEvent { path: path.into_iter().collect(), kind })
    }

    proptest! {
        #[test]
        fn events_come_back_as_they_were(events in prop::collection::vec(event(), 1..20), after in 0_u64..30) {
            let chunk = EventChunk::of(7, Timestamp::UNIX_EPOCH, &events).unwrap().unwrap();
            let mut found = Vec::new();
            let next = read("t", (7, &chunk.json), &mut found, (after, 1000)).unwrap();
            prop_assert_eq!((next, chunk.last + 1), (chunk.last + 1, 7 + events.len() as u64));
            let wanted: Vec<_> = (7..).zip(events).filter(|(seq, _)| *seq > after).collect();
            prop_assert_eq!(found.into_iter().map(|logged| (logged.seq, logged.event)).collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn an_answer_in_tokens_is_stored_as_one_text() {
        let kind = |text: &str| EventKind::Text { text: text.to_owned(), role: TextRole::Answer };
        let events = ["an", " ans", "wer"].map(|text| RunEvent::own(kind(text)));
        let chunk = EventChunk::of(1, Timestamp::UNIX_EPOCH, &events).unwrap().unwrap();
        assert_eq!(
            chunk.json,
            r#"[0,[{"kind":{"event":"text","text":"an answer","role":"answer"}}],[[0,[2,4,3]]]]"#
        );
    }

    #[test]
    fn a_chunk_of_an_earlier_version_is_read_and_a_damaged_one_is_named() {
        let mut found = Vec::new();
        read("t", (3, r#"[77,[{"kind":{"event":"text_reset"}}]]"#), &mut found, (0, 10)).unwrap();
        assert_eq!((found[0].seq, found[0].at.as_microsecond()), (3, 77));
        for damaged in ["", "[", "[1]", r#"[1,[],[],"newer"]"#] {
            let error = read("t", (3, damaged), &mut found, (0, 10)).unwrap_err();
            assert!(error.to_string().contains("the events of task \"t\" from 3 on"), "{error}");
        }
    }
}
