//! The payloads of notifications, in the version of the client. Pure except for reading the log.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use crate::model::{Artifact, Event, Part, TaskArtifactUpdateEvent, extend_metadata};
use crate::server::log_entry::LoggedEvent;
use crate::server::task_log::TaskLog;
use crate::v03;
use crate::version::ProtocolVersion;

/// Most bytes of merged chunks, because receivers limit the size of bodies.
const MOST_MERGED: usize = 256 * 1024;

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Payload {
    /// The number of the newest event in it.
    pub(super) last: u64,
    pub(super) body: Bytes,
}

/// The payloads for these events, in order: in 1.0 the events, with the chunks of an artifact merged; in 0.3 the current
/// task, once.
pub(super) fn payloads(
    version: ProtocolVersion,
    log: &TaskLog,
    events: &[Arc<LoggedEvent>],
) -> Result<Vec<Payload>, serde_json::Error> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    match version {
        ProtocolVersion::V0_3 => {
            let (last, task) = log.snapshot_at(u64::MAX);
            let body = serde_json::to_vec(&v03::serialize::task(&task))?.into();
            Ok(vec![Payload { last, body }])
        }
        ProtocolVersion::V1_0 => merged(events).into_iter().map(Piece::payload).collect(),
    }
}

/// One event, or several merged ones.
#[derive(Debug)]
enum Piece<'a> {
    One(&'a LoggedEvent, Box<Cow<'a, Event>>),
    Merged { last: u64, size: usize, update: Box<TaskArtifactUpdateEvent> },
}

fn merged(events: &[Arc<LoggedEvent>]) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for event in events {
        let grown = pieces.last_mut().is_some_and(|piece| piece.grow(event));
        if !grown {
            pieces.push(Piece::One(event, Box::new(event.event())));
        }
    }
    pieces
}

impl Piece<'_> {
    /// Merges a chunk that continues the artifact of this piece. Returns `false` for any other event.
    fn grow(&mut self, event: &LoggedEvent) -> bool {
        let event_of = event.event();
        let Event::ArtifactUpdate(chunk) = &*event_of else { return false };
        let Some((known, size)) = self.artifact() else { return false };
        let size = size + text_size(&chunk.artifact);
        let follows = chunk.append && chunk.artifact.artifact_id == known.artifact.artifact_id;
        if !follows || size > MOST_MERGED {
            return false;
        }
        if let Self::One(..) = self {
            *self = Self::Merged { last: event.seq(), size, update: Box::new(known.clone()) };
        }
        if let Self::Merged { last, size: known, update } = self {
            (*last, *known) = (event.seq(), size);
            append(update, chunk);
        }
        true
    }

    /// The artifact update of this piece, and the size of its text.
    fn artifact(&self) -> Option<(&TaskArtifactUpdateEvent, usize)> {
        match self {
            Self::Merged { size, update, .. } => Some((update, *size)),
            Self::One(_, event) => match &***event {
                Event::ArtifactUpdate(update) => Some((update, text_size(&update.artifact))),
                _ => None,
            },
        }
    }

    fn payload(self) -> Result<Payload, serde_json::Error> {
        Ok(match self {
            Self::One(event, _) => Payload { last: event.seq(), body: event.json(ProtocolVersion::V1_0)? },
            Self::Merged { last, update, .. } => {
                Payload { last, body: serde_json::to_vec(&Event::ArtifactUpdate(*update))?.into() }
            }
        })
    }
}

fn append(update: &mut TaskArtifactUpdateEvent, chunk: &TaskArtifactUpdateEvent) {
    update.artifact.append(&chunk.artifact);
    update.last_chunk |= chunk.last_chunk;
    extend_metadata(&mut update.metadata, chunk.metadata.as_ref());
}

fn text_size(artifact: &Artifact) -> usize {
    artifact.parts.iter().filter_map(Part::as_text).map(str::len).sum()
}

#[cfg(test)]
#[path = "payload_tests.rs"]
mod tests;
