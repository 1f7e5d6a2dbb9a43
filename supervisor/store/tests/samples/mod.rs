//! Small values to store, for the tests and the benchmark of this crate.

#![allow(
    dead_code,
    clippy::expect_used,
    reason = "each test program uses some of them; a failure is a failed test"
)]

use std::sync::Arc;

use caipe_engine::{AgentName, EventKind, RunEvent, RunState, TextRole};
use caipe_model::{Message, Role};
use caipe_store::{Commit, EventChunk, Fence, LeaseTerm, SavedConversation, TaskPhase, TaskRecord};
use jiff::Timestamp;
use serde_json::json;

/// A conversation that has one message.
pub(crate) fn state(text: &str) -> RunState {
    let mut state = RunState::new(AgentName::new("supervisor"));
    state.messages.push(Arc::new(Message::text(Role::User, text)));
    state
}

/// A commit of the whole state of a conversation.
pub(crate) fn saved(context: &str, text: &str) -> Commit {
    changed(context, &SavedConversation::default(), &state(text))
}

/// A commit of what changed in a conversation.
pub(crate) fn changed(context: &str, before: &SavedConversation, now: &RunState) -> Commit {
    let change = before.change(now).expect("a state can be written");
    Commit { context: context.into(), conversation: Some(change), ..Commit::default() }
}

/// A piece of an answer.
pub(crate) fn event(text: &str) -> RunEvent {
    RunEvent::own(EventKind::Text { text: text.into(), role: TextRole::Answer })
}

/// A commit of events that are named by their numbers, by the first owner of the task. Its place is that of its last event.
pub(crate) fn logged(task: &str, first: u64, count: u64) -> Commit {
    let events: Vec<_> = (first..first + count).map(|seq| event(&seq.to_string())).collect();
    let chunk = EventChunk::of(first, time_of(first), &events).expect("the events can be written");
    let fence = Fence { task: task.into(), number: first + count - 1, ..Fence::default() };
    Commit { events: chunk.into_iter().collect(), fence: Some(fence), ..Commit::default() }
}

/// The term of a lease.
pub(crate) fn term(owner: &str) -> LeaseTerm {
    LeaseTerm { owner: owner.to_owned(), ttl: std::time::Duration::from_secs(10) }
}

/// When events were committed whose first has this number.
pub(crate) fn time_of(first: u64) -> Timestamp {
    let micros = i64::try_from(first).unwrap_or(i64::MAX).min(1_000_000_000);
    Timestamp::from_microsecond(1_577_836_800_000_001 + micros).expect("a time")
}

/// A task whose last change was this many seconds after 2020 began.
pub(crate) fn task(id: &str, context: &str, phase: TaskPhase, second: i64) -> TaskRecord {
    let created: Timestamp = "2020-01-01T00:00:00Z".parse().expect("a time");
    TaskRecord {
        id: id.into(),
        context: context.into(),
        phase,
        created,
        updated: created + jiff::SignedDuration::from_secs(second),
        owner: None,
        trace_id: "trace".into(),
        request: json!({ "parts": [{ "text": "What changed?" }] }),
        replies: Vec::new(),
        is_repeatable: false,
        recoveries: 0,
        status_message: None,
    }
}

pub(crate) fn recorded(record: TaskRecord) -> Commit {
    Commit { context: record.context.clone(), task: Some(record), ..Commit::default() }
}
