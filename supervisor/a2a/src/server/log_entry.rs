//! An event in a task's log, and its size in memory.

use std::sync::OnceLock;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use crate::model::{Artifact, Content, Event, Message, Metadata, Part, Task};
use crate::v03;
use crate::version::ProtocolVersion;

/// The size of an event without its content: structure, ids, and the frame of its encoded forms.
const OVERHEAD: usize = 1024;

/// An event with its number in the log.
#[derive(Debug)]
pub struct LoggedEvent {
    seq: u64,
    at: Timestamp,
    event: Event,
    weight: usize,
    v0_3: OnceLock<Bytes>,
    v1_0: OnceLock<Bytes>,
    rest_v0_3: OnceLock<Bytes>,
}

impl LoggedEvent {
    /// An event of a log. A status without a time gets the time of the event.
    pub(super) fn new(seq: u64, at: Timestamp, mut event: Event) -> Self {
        let status = match &mut event {
            Event::Task(task) => Some(&mut task.status),
            Event::StatusUpdate(update) => Some(&mut update.status),
            Event::Message(_) | Event::ArtifactUpdate(_) => None,
        };
        if let Some(status) = status {
            status.timestamp.get_or_insert(at);
        }
        // The content exists as itself, in the task, and in two encoded forms; a third is rare.
        let weight = OVERHEAD + 4 * content(&event);
        Self { at, weight, ..Self::detached(seq, event) }
    }

    /// An event outside a log: a snapshot of a task, or a message without a task.
    pub(super) fn detached(seq: u64, event: Event) -> Self {
        let (v0_3, v1_0, rest_v0_3) = Default::default();
        Self { seq, at: Timestamp::MIN, event, weight: 0, v0_3, v1_0, rest_v0_3 }
    }

    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// The time when it was appended.
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    pub const fn event(&self) -> &Event {
        &self.event
    }

    /// Whether streams show the event. A message is only added to the task's history: in a stream, clients would take it
    /// for the whole response.
    pub(super) const fn is_shown(&self) -> bool {
        !matches!(self.event, Event::Message(_))
    }

    /// The approximate size in memory once both versions are encoded.
    pub(super) const fn weight(&self) -> usize {
        self.weight
    }

    /// The event in the JSON of a version, encoded once and shared by all readers.
    pub fn json(&self, version: ProtocolVersion) -> Result<&Bytes, serde_json::Error> {
        let cell = match version {
            ProtocolVersion::V0_3 => &self.v0_3,
            ProtocolVersion::V1_0 => &self.v1_0,
        };
        once(cell, || encode(&self.event, version))
    }

    /// The event in the JSON of 0.3's REST binding, encoded once as well.
    pub fn rest_json_v0_3(&self) -> Result<&Bytes, serde_json::Error> {
        once(&self.rest_v0_3, || serde_json::to_vec(&v03::rest::event(&self.event, true)))
    }
}

fn once(
    cell: &OnceLock<Bytes>,
    make: impl FnOnce() -> Result<Vec<u8>, serde_json::Error>,
) -> Result<&Bytes, serde_json::Error> {
    if let Some(bytes) = cell.get() {
        return Ok(bytes);
    }
    let bytes = Bytes::from(make()?);
    Ok(cell.get_or_init(|| bytes))
}

fn encode(event: &Event, version: ProtocolVersion) -> Result<Vec<u8>, serde_json::Error> {
    match version {
        ProtocolVersion::V0_3 => serde_json::to_vec(&v03::serialize::event(event)),
        ProtocolVersion::V1_0 => serde_json::to_vec(event),
    }
}

/// The approximate size of an event's content in bytes.
fn content(event: &Event) -> usize {
    match event {
        Event::Task(task) => task_content(task),
        Event::Message(message) => message_content(message),
        Event::StatusUpdate(update) => {
            update.status.message.as_ref().map_or(0, message_content) + metadata(update.metadata.as_ref())
        }
        Event::ArtifactUpdate(update) => artifact(&update.artifact) + metadata(update.metadata.as_ref()),
    }
}

/// The approximate size of a task's content in bytes.
pub(super) fn task_content(task: &Task) -> usize {
    let status = task.status.message.as_ref().map_or(0, message_content);
    let history: usize = task.history.iter().map(message_content).sum();
    let artifacts: usize = task.artifacts.iter().map(artifact).sum();
    status + history + artifacts + metadata(task.metadata.as_ref())
}

fn message_content(message: &Message) -> usize {
    parts(&message.parts) + metadata(message.metadata.as_ref()) + message.message_id.len()
}

fn artifact(artifact: &Artifact) -> usize {
    let texts = [&artifact.name, &artifact.description];
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    parts(&artifact.parts) + metadata(artifact.metadata.as_ref()) + texts
}

fn parts(parts: &[Part]) -> usize {
    let part = |part: &Part| match &part.content {
        Content::Text(text) | Content::Raw(text) | Content::Url(text) => text.len(),
        Content::Data(data) => value(data),
        Content::Unknown => 0,
    };
    parts.iter().map(|each| part(each) + metadata(each.metadata.as_ref())).sum()
}

fn metadata(metadata: Option<&Metadata>) -> usize {
    metadata.map_or(0, |members| members.iter().map(|(name, member)| name.len() + value(member)).sum())
}

/// The size of a value, about as it is written.
fn value(json: &Value) -> usize {
    const SCALAR: usize = 8;
    match json {
        Value::String(text) => SCALAR + text.len(),
        Value::Array(items) => SCALAR + items.iter().map(value).sum::<usize>(),
        Value::Object(members) => {
            SCALAR + members.iter().map(|(name, member)| SCALAR + name.len() + value(member)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => SCALAR,
    }
}
