//! Reads a stream of server-sent events within limits of size and silence.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use reqwest::Response;
use sse_stream::{Sse, SseByteStream};

use super::error::ClientError;
use super::rpc::{decode, result};
use super::{EventStream, StreamEvent};
use crate::model::Event;
use crate::v03;
use crate::version::ProtocolVersion;

/// The events of a response.
pub(super) fn events(
    response: Response,
    host: String,
    version: ProtocolVersion,
    idle: Duration,
    limit: usize,
) -> EventStream {
    let chunks = response
        .bytes_stream()
        .map(move |chunk| chunk.map_err(|error| ClientError::transport(error, &host, idle)));
    read(chunks.boxed(), version, idle, limit)
}

/// The events in a stream of bytes.
pub(crate) fn read(
    chunks: BoxStream<'static, Result<Bytes, ClientError>>,
    version: ProtocolVersion,
    idle: Duration,
    limit: usize,
) -> EventStream {
    let pending = Arc::new(AtomicUsize::new(0));
    let blocks = SseByteStream::new(guarded(chunks, idle, limit, Arc::clone(&pending)).boxed());
    let reader = Reader { blocks, pending, version, progress: Progress::Running };
    stream::unfold(reader, |mut reader| async {
        let event = reader.next().await?;
        Some((event, reader))
    })
    .boxed()
}

/// Ends with an error when nothing comes for too long, or too much without an event being whole.
fn guarded(
    chunks: BoxStream<'static, Result<Bytes, ClientError>>,
    idle: Duration,
    limit: usize,
    pending: Arc<AtomicUsize>,
) -> impl Stream<Item = Result<Bytes, ClientError>> + Send {
    stream::unfold(Some(chunks), move |chunks| {
        let pending = Arc::clone(&pending);
        async move {
            let mut chunks = chunks?;
            let chunk = match tokio::time::timeout(idle, chunks.next()).await {
                Ok(chunk) => chunk?,
                Err(_) => Err(ClientError::Idle(idle)),
            };
            let size = chunk.as_ref().map_or(0, Bytes::len);
            let before = pending.fetch_add(size, Ordering::Relaxed);
            match chunk {
                Ok(_) if before > limit => Some((Err(ClientError::TooLarge(limit)), None)),
                Ok(chunk) => Some((Ok(chunk), Some(chunks))),
                Err(error) => Some((Err(error), None)),
            }
        }
    })
}

/// How far a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// More must come.
    Running,
    /// The peer may hang up.
    MayEnd,
    /// Nothing more is read.
    Ended,
}

struct Reader {
    blocks: SseByteStream<BoxStream<'static, Result<Bytes, ClientError>>>,
    /// Bytes that came since the last whole event.
    pending: Arc<AtomicUsize>,
    version: ProtocolVersion,
    progress: Progress,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<StreamEvent, ClientError>> {
        while self.progress != Progress::Ended {
            match self.blocks.next().await {
                Some(Ok(block)) => {
                    self.pending.store(0, Ordering::Relaxed);
                    if let Some(event) = self.block(block) {
                        return Some(event);
                    }
                }
                Some(Err(error)) => return Some(Err(self.fail(broken(error)))),
                None if self.progress == Progress::Running => return Some(Err(self.fail(ClientError::Cut))),
                None => self.progress = Progress::Ended,
            }
        }
        None
    }

    /// A block without data is no event.
    fn block(&mut self, block: Sse) -> Option<Result<StreamEvent, ClientError>> {
        let data = block.data.filter(|data| !data.trim().is_empty())?;
        let seq = block.id.and_then(|id| id.parse().ok());
        Some(match event(data.as_bytes(), self.version) {
            Ok((event, progress)) => {
                self.progress = progress.unwrap_or(self.progress);
                Ok(StreamEvent { seq, event })
            }
            Err(error) => Err(self.fail(error)),
        })
    }

    const fn fail(&mut self, error: ClientError) -> ClientError {
        self.progress = Progress::Ended;
        error
    }
}

/// One event, and how far the stream is after it if it tells.
pub(super) fn event(json: &[u8], version: ProtocolVersion) -> Result<(Event, Option<Progress>), ClientError> {
    let result = result(json)?;
    match version {
        ProtocolVersion::V1_0 => {
            let event: Event = decode(result)?;
            let progress = progress(&event);
            Ok((event, progress))
        }
        ProtocolVersion::V0_3 => {
            let event: v03::Event = decode(result)?;
            let is_final = matches!(&event, v03::Event::StatusUpdate(update) if update.is_final);
            let event = event.into();
            let progress = if is_final { Some(Progress::Ended) } else { progress(&event) };
            Ok((event, progress))
        }
    }
}

/// An update that ends the task is the last; a message, a task that has ended and one that waits may be.
fn progress(event: &Event) -> Option<Progress> {
    match (event, event.state()) {
        (Event::Message(_), _) => Some(Progress::MayEnd),
        (Event::StatusUpdate(_), Some(state)) if state.is_terminal() => Some(Progress::Ended),
        (_, Some(state)) if state.ends_stream() => Some(Progress::MayEnd),
        (_, Some(_)) => Some(Progress::Running),
        (_, None) => None,
    }
}

fn broken(error: sse_stream::Error) -> ClientError {
    match error {
        sse_stream::Error::Body(error) => match error.downcast::<ClientError>() {
            Ok(error) => *error,
            Err(error) => ClientError::Protocol(error.to_string()),
        },
        error => ClientError::Protocol(format!("the event stream is malformed: {error}")),
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
