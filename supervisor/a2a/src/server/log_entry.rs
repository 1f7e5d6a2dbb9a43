//! An event in a task's log, and its size in memory.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::Value;

use super::encoding::{Encoding, encode};
use super::text_piece::{TextPiece, TextTemplate};
use crate::model::{Artifact, Content, Event, Message, Metadata, Part, Task, TaskState};
use crate::version::ProtocolVersion;

/// The size of an event without its content: structure, ids, and the frame of its encoded forms.
const OVERHEAD: usize = 1024;

/// The size of a piece of text without the text.
const PIECE: usize = 192;

/// An event with its number in the log.
#[derive(Debug)]
pub struct LoggedEvent {
    seq: u64,
    at: Timestamp,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Whole(Box<Whole>),
    Piece(TextPiece),
}

/// An event with its encoded forms, each made once and shared by all readers.
#[derive(Debug)]
struct Whole {
    event: Event,
    weight: usize,
    json: [OnceLock<Bytes>; Encoding::COUNT],
}

impl LoggedEvent {
    /// An event of a log. A status without a time gets the time of the event. `known` is what the piece of text before it
    /// shares with its neighbours.
    pub(super) fn new(
        seq: u64,
        at: Timestamp,
        mut event: Event,
        known: &mut Option<Arc<TextTemplate>>,
    ) -> Self {
        if let Some(piece) = TextPiece::of(&mut event, known) {
            return Self::piece(seq, at, piece);
        }
        let status = match &mut event {
            Event::Task(task) => Some(&mut task.status),
            Event::StatusUpdate(update) => Some(&mut update.status),
            Event::Message(_) | Event::ArtifactUpdate(_) => None,
        };
        if let Some(status) = status {
            status.timestamp.get_or_insert(at);
        }
        // The content exists as itself and in two encoded forms; a third is rare.
        let weight = OVERHEAD + 3 * content(&event);
        Self { at, ..Self::whole(seq, event, weight) }
    }

    pub(super) const fn piece(seq: u64, at: Timestamp, piece: TextPiece) -> Self {
        Self { seq, at, body: Body::Piece(piece) }
    }

    /// An event outside a log: a snapshot of a task, or a message without a task.
    pub(super) fn detached(seq: u64, event: Event) -> Self {
        Self::whole(seq, event, 0)
    }

    fn whole(seq: u64, event: Event, weight: usize) -> Self {
        let whole = Whole { event, weight, json: Default::default() };
        Self { seq, at: Timestamp::MIN, body: Body::Whole(Box::new(whole)) }
    }

    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// The time when it was appended.
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// The event; a piece of text makes it each time.
    pub fn event(&self) -> Cow<'_, Event> {
        match &self.body {
            Body::Whole(whole) => Cow::Borrowed(&whole.event),
            Body::Piece(piece) => Cow::Owned(piece.event()),
        }
    }

    /// The state of the task after the event, if the event says it.
    pub fn state(&self) -> Option<TaskState> {
        self.as_whole().and_then(Event::state)
    }

    /// The event, unless it is a piece of text.
    pub(super) fn as_whole(&self) -> Option<&Event> {
        match &self.body {
            Body::Whole(whole) => Some(&whole.event),
            Body::Piece(_) => None,
        }
    }

    /// The piece of text that the event is.
    pub(super) const fn as_piece(&self) -> Option<&TextPiece> {
        match &self.body {
            Body::Whole(_) => None,
            Body::Piece(piece) => Some(piece),
        }
    }

    /// Whether streams show the event. A message is only added to the task's history: in a stream, clients would take it
    /// for the whole response.
    pub(super) fn is_shown(&self) -> bool {
        !matches!(self.as_whole(), Some(Event::Message(_)))
    }

    /// The approximate size in memory once both versions are encoded.
    pub(super) const fn weight(&self) -> usize {
        match &self.body {
            Body::Whole(whole) => whole.weight,
            Body::Piece(piece) => PIECE + piece.text().len(),
        }
    }

    /// The event in the JSON of a version.
    pub fn json(&self, version: ProtocolVersion) -> Result<Bytes, serde_json::Error> {
        match &self.body {
            Body::Whole(whole) => whole.json(version.into()).cloned(),
            Body::Piece(piece) => {
                let mut json = BytesMut::new();
                piece.write(version.into(), &mut json)?;
                Ok(json.freeze())
            }
        }
    }

    /// Writes the event's JSON.
    pub(super) fn write(&self, encoding: Encoding, out: &mut BytesMut) -> Result<(), serde_json::Error> {
        match &self.body {
            Body::Whole(whole) => out.put_slice(whole.json(encoding)?),
            Body::Piece(piece) => piece.write(encoding, out)?,
        }
        Ok(())
    }
}

impl Whole {
    fn json(&self, encoding: Encoding) -> Result<&Bytes, serde_json::Error> {
        let cell = &self.json[encoding as usize];
        if let Some(bytes) = cell.get() {
            return Ok(bytes);
        }
        // Without the spare capacity of a vector, because it stays.
        let bytes = Bytes::from(encode(&self.event, encoding)?.into_boxed_slice());
        Ok(cell.get_or_init(|| bytes))
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
