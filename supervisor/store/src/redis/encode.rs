//! Values as arguments of scripts.

use std::time::Duration;

use jiff::Timestamp;

use crate::commit_rules::check;
use crate::conversation::ListChange;
use crate::error::StoreError;
use crate::event_chunk::EventChunk;
use crate::json::{encode, sized};
use crate::push::PushChange;
use crate::types::{Commit, TaskRecord};
use crate::unique::unique;

/// The arguments of one call.
#[derive(Clone, Default)]
pub(super) struct Arguments(Vec<String>);

impl Arguments {
    pub(super) fn of<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        Self(values.into_iter().map(str::to_owned).collect())
    }

    pub(super) fn and(mut self, number: u64) -> Self {
        self.number(number);
        self
    }

    pub(super) fn all(&mut self, values: impl IntoIterator<Item = String>) {
        self.0.extend(values);
    }

    pub(super) fn push(&mut self, value: impl Into<String>) {
        self.0.push(value.into());
    }

    pub(super) fn number(&mut self, number: u64) {
        self.0.push(number.to_string());
    }

    /// Whether an optional part follows.
    fn part<T>(&mut self, part: Option<T>) -> Option<T> {
        self.push(if part.is_some() { "1" } else { "0" });
        part
    }
}

impl From<Arguments> for Vec<String> {
    fn from(arguments: Arguments) -> Self {
        arguments.0
    }
}

/// A time as text of 16 bytes that sorts as the time does, also before 1970.
pub(super) fn place_of(at: Timestamp) -> String {
    format!("{:016x}", at.as_microsecond().cast_unsigned() ^ (1 << 63))
}

/// At least one millisecond, so that a term is never empty.
pub(super) fn millis(duration: Duration) -> u64 {
    const LONGEST: u64 = 1 << 40;
    u64::try_from(duration.as_millis()).unwrap_or(LONGEST).clamp(1, LONGEST)
}

/// The owner as the scripts compare it: `-` for none.
pub(super) fn owner_of(owner: Option<&str>) -> String {
    owner.map_or_else(|| "-".to_owned(), |owner| format!("={owner}"))
}

/// Checks a commit and writes it as arguments.
pub(super) fn commit(commit: Commit, sender: &str, at: Timestamp) -> Result<Arguments, StoreError> {
    check(&commit)?;
    let mut to = Arguments::of([sender, &unique(), &place_of(at)]);
    if let Some(record) = to.part(commit.task) {
        add_record(&mut to, record)?;
    }
    if let Some(term) = to.part(commit.create) {
        to.push(term.owner);
        to.number(millis(term.ttl));
    }
    if let Some(change) = to.part(commit.conversation) {
        to.push(commit.context);
        to.push(change.run);
        to.number(change.lists.len() as u64);
        for ListChange { list, keep, append } in change.lists {
            to.push(list);
            to.number(keep);
            to.number(append.len() as u64);
            to.0.extend(append);
        }
    }
    let Some(fence) = to.part(commit.fence) else { return Ok(to) };
    to.push(fence.task);
    for number in [fence.token, fence.number, fence.reserved, fence.handled, u64::from(fence.release)] {
        to.number(number);
    }
    to.number(commit.events.len() as u64);
    for EventChunk { first, last, json } in commit.events {
        to.number(first);
        to.number(last);
        to.push(json);
    }
    to.number(commit.outbox.len() as u64);
    for entry in commit.outbox {
        to.push(entry.id);
        to.push(entry.deadline.as_microsecond().to_string());
        to.push(entry.body);
    }
    Ok(to)
}

fn add_record(to: &mut Arguments, record: TaskRecord) -> Result<(), StoreError> {
    let json = sized(|| format!("the record of task {:?}", record.id), encode(&record)?)?;
    let (owner, place) = (owner_of(record.owner.as_deref()), place_of(record.updated));
    to.push(record.id);
    to.push(record.context);
    to.push(record.phase.as_str());
    to.push(owner);
    to.push(place);
    to.push(json);
    Ok(())
}

pub(super) fn push(change: PushChange) -> Arguments {
    match change {
        PushChange::Put(push) => Arguments::of(["put", &push.task, &push.id, &push.body]).and(push.delivered),
        PushChange::Delivered { task, id, seq } => Arguments::of(["delivered", &task, &id, ""]).and(seq),
        PushChange::Delete { task, id } => Arguments::of(["delete", &task, &id, ""]).and(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_sort_as_times_do() {
        let times = [i64::MIN / 100, -1, 0, 1, 1_764_000_000_000_000];
        let places = times.map(|micros| place_of(Timestamp::from_microsecond(micros).unwrap()));
        assert!(places.is_sorted() && places.iter().all(|place| place.len() == 16), "{places:?}");
    }
}
