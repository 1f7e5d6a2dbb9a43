//! A subscription as server-sent events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use tokio::time::{Instant, Sleep, sleep};

use super::call::{Sent, Subscription};
use super::encoding::{encode, encode_with};
use super::framing::Framing;
use super::log_entry::LoggedEvent;
use super::task_log::Cursor;
use crate::error::A2aError;
use crate::event_id;
use crate::model::{Event, Task, TaskState};
use crate::version::ProtocolVersion;

/// Events that are ready go out together up to this many bytes.
const CHUNK: usize = 64 * 1024;

/// The response that streams a task until it ends or waits, or a single message.
pub(super) fn response(
    sent: Sent,
    framing: Framing,
    version: ProtocolVersion,
    keep_alive: Duration,
) -> Response {
    let subscription = match sent {
        Sent::Task(subscription) => subscription,
        Sent::Message(message) => return single(&Event::Message(message), &framing, version),
    };
    // Boxed, because the stream moves it with each chunk.
    let writer = Box::new(Writer::new(subscription, framing, version, keep_alive));
    let chunks = stream::unfold(writer, |mut writer| async {
        let chunk = writer.next_chunk().await?;
        Some((Ok::<_, Infallible>(chunk), writer))
    });
    events(Body::from_stream(chunks))
}

/// An error for a client that expects a stream.
pub(super) fn refusal(framing: &Framing, error: &A2aError, version: ProtocolVersion) -> Response {
    events(Body::from(framing.failure(error, version)))
}

/// A stream of one event without a number.
fn single(event: &Event, framing: &Framing, version: ProtocolVersion) -> Response {
    let frame = match encode(event, framing.encoding(version)) {
        Ok(json) => [&framing.prefix(), json.as_slice(), framing.suffix()].concat().into(),
        Err(error) => framing.failure(&unencodable(&error), version),
    };
    events(Body::from(frame))
}

fn unencodable(error: &serde_json::Error) -> A2aError {
    A2aError::Internal(format!("failed to encode an event: {error}"))
}

fn events(body: Body) -> Response {
    const HEADERS: [(HeaderName, HeaderValue); 3] = [
        // Event streams are UTF-8 by definition, but Python's `requests` reads a text without a charset as ISO-8859-1.
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Disables response buffering in Nginx.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (HEADERS, body).into_response()
}

struct KeepAliveDue;

/// Writes what a cursor reads.
struct Writer {
    cursor: Cursor,
    /// The snapshot of the task with which a resumed stream starts.
    opening: Option<(u64, Box<Task>)>,
    /// The next event, read ahead to see whether the stream continues.
    ahead: Option<Arc<LoggedEvent>>,
    /// The newest state in the stream, if the stream may end there.
    state: Option<TaskState>,
    framing: Framing,
    prefix: Bytes,
    version: ProtocolVersion,
    keep_alive: Duration,
    /// Fires at the earliest when a keep-alive may be due. It is not reset for each event.
    silence: Pin<Box<Sleep>>,
    /// The time of the last write.
    written: Instant,
    ended: bool,
}

impl Writer {
    fn new(
        subscription: Subscription,
        framing: Framing,
        version: ProtocolVersion,
        keep_alive: Duration,
    ) -> Self {
        let Subscription { log, after } = subscription;
        let opening = (after > 0).then(|| log.snapshot_at(after));
        let after = opening.as_ref().map_or(0, |(seq, _)| *seq);
        Self {
            cursor: log.cursor(after),
            ahead: None,
            state: None,
            opening: opening.map(|(seq, task)| (seq, Box::new(task))),
            prefix: framing.prefix(),
            framing,
            version,
            keep_alive,
            silence: Box::pin(sleep(keep_alive)),
            written: Instant::now(),
            ended: false,
        }
    }

    /// All events that are ready, or a keep-alive comment.
    async fn next_chunk(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let mut chunk = BytesMut::new();
        if let Some((seq, task)) = self.opening.take() {
            self.write(&mut chunk, &LoggedEvent::detached(seq, (*task).into()));
            // A client subscribes to a waiting task to follow its continuation.
            self.state = self.state.filter(|state| state.is_terminal());
        } else if self.ahead.is_none() {
            match self.awaited().await {
                Ok(event) => self.write(&mut chunk, &*event?),
                Err(KeepAliveDue) => return Some(Bytes::from_static(b": keep-alive\n\n")),
            }
        }
        self.write_ready(&mut chunk);
        self.written = Instant::now();
        Some(chunk.freeze())
    }

    /// Waits for the next event.
    async fn awaited(&mut self) -> Result<Option<Arc<LoggedEvent>>, KeepAliveDue> {
        loop {
            tokio::select! {
                biased;
                event = self.cursor.next() => return Ok(event),
                () = &mut self.silence => {}
            }
            let (now, due) = (Instant::now(), self.written + self.keep_alive);
            if due <= now {
                self.written = now;
            }
            self.silence.as_mut().reset(self.written + self.keep_alive);
            if due <= now {
                return Err(KeepAliveDue);
            }
        }
    }

    fn write_ready(&mut self, chunk: &mut BytesMut) {
        while !self.ended {
            let Some(event) = self.ahead.take().or_else(|| self.cursor.ready()) else {
                self.ended = self.state.is_some_and(TaskState::ends_stream);
                return;
            };
            if chunk.len() >= CHUNK {
                self.ahead = Some(event);
                return;
            }
            self.write(chunk, &event);
        }
    }

    fn write(&mut self, chunk: &mut BytesMut, event: &LoggedEvent) {
        let start = chunk.len();
        chunk.put_slice(b"id: ");
        // Writing to memory cannot fail.
        let _ = event_id::write(event.seq(), chunk);
        chunk.put_slice(b"\n");
        chunk.put_slice(&self.prefix);
        match self.write_json(chunk, event) {
            Ok(()) => chunk.put_slice(self.framing.suffix()),
            Err(error) => {
                chunk.truncate(start);
                chunk.put_slice(&self.framing.failure(&unencodable(&error), self.version));
                self.ended = true;
            }
        }
        if let Some(state) = event.state() {
            self.state = Some(state);
        }
    }

    fn write_json(&mut self, chunk: &mut BytesMut, event: &LoggedEvent) -> Result<(), serde_json::Error> {
        let encoding = self.framing.encoding(self.version);
        match event.as_whole() {
            // Rare, so it is not kept.
            Some(whole) if self.is_followed(whole) => {
                chunk.put_slice(&encode_with(whole, encoding, false)?);
                Ok(())
            }
            _ => event.write(encoding, chunk),
        }
    }

    /// Whether the task waits after this event but has more events ready, because it has been answered. Otherwise the
    /// stream ends with this event, which is marked as final.
    fn is_followed(&mut self, event: &Event) -> bool {
        let Event::StatusUpdate(update) = event else { return false };
        if !update.status.state.is_interrupted() {
            return false;
        }
        self.ahead = self.cursor.ready();
        self.ended = self.ahead.is_none();
        !self.ended
    }
}

/// Waits until the task ends or waits, and returns it.
pub(super) async fn settled(subscription: Subscription) -> Task {
    let Subscription { log, after } = subscription;
    let mut cursor = log.cursor(after);
    let mut state = None;
    while let Some(event) = cursor.next().await {
        state = event.state().or(state);
        while let Some(event) = cursor.ready() {
            state = event.state().or(state);
        }
        if state.is_some_and(TaskState::ends_stream) {
            break;
        }
    }
    log.snapshot()
}
