//! Reads a stream of server-sent events within limits of size and silence.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use reqwest::Response;
use sse_stream::{Sse, SseByteStream};

use super::byte_limits::{ByteCounter, ByteLimits};
use super::error::ClientError;
use super::options::ClientOptions;
use super::response::{decode, result};
use super::transport::{TimeLeft, transport_error};
use crate::event_id;
use crate::model::Event;
use crate::v03;
use crate::version::ProtocolVersion;

/// An event of one connection, with its number if the server numbers its events.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Numbered {
    pub(super) seq: Option<u64>,
    pub(super) event: Event,
}

/// The events of one connection, up to the end of the task, its wait for the client, or the first failure.
pub(super) type RawEvents = BoxStream<'static, Result<Numbered, ClientError>>;

/// The limits of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    bytes: ByteLimits,
    idle: Duration,
}

impl Limits {
    /// The same number of bytes for every part.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) const fn new(most: usize, idle: Duration) -> Self {
        Self { bytes: ByteLimits { line: most, event: most, stream: most as u64 }, idle }
    }

    pub(super) const fn of(options: &ClientOptions) -> Self {
        let bytes =
            ByteLimits { line: options.max_line, event: options.max_message, stream: options.max_stream };
        Self { bytes, idle: options.idle_timeout }
    }
}

/// A stream of one event.
pub(super) fn single(event: Numbered) -> RawEvents {
    stream::once(std::future::ready(Ok(event))).boxed()
}

/// The events of a response.
pub(super) fn events(
    response: Response,
    host: String,
    version: ProtocolVersion,
    limits: Limits,
) -> RawEvents {
    let time = TimeLeft::of(limits.idle);
    let chunks =
        response.bytes_stream().map(move |chunk| chunk.map_err(|error| transport_error(error, &host, time)));
    read(chunks.boxed(), version, limits)
}

/// The events in a stream of bytes.
pub(crate) fn read(
    chunks: BoxStream<'static, Result<Bytes, ClientError>>,
    version: ProtocolVersion,
    limits: Limits,
) -> RawEvents {
    let blocks = SseByteStream::new(limited(chunks, limits).boxed());
    let reader = Reader { blocks, version, progress: Progress::Running };
    stream::unfold(reader, |mut reader| async {
        let event = reader.next().await?;
        Some((event, reader))
    })
    .boxed()
}

/// The chunks until a limit is exceeded, then the error.
fn limited(
    chunks: BoxStream<'static, Result<Bytes, ClientError>>,
    limits: Limits,
) -> impl Stream<Item = Result<Bytes, ClientError>> + Send {
    let limited =
        LimitedChunks { chunks, idle: limits.idle, counter: ByteCounter::new(limits.bytes), failure: None };
    stream::unfold(Some(limited), |limited| async {
        let mut limited = limited?;
        match limited.next().await? {
            Ok(chunk) => Some((Ok(chunk), Some(limited))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

struct LimitedChunks {
    chunks: BoxStream<'static, Result<Bytes, ClientError>>,
    idle: Duration,
    counter: ByteCounter,
    /// The error that follows the last chunk.
    failure: Option<ClientError>,
}

impl LimitedChunks {
    async fn next(&mut self) -> Option<Result<Bytes, ClientError>> {
        if let Some(failure) = self.failure.take() {
            return Some(Err(failure));
        }
        let Ok(chunk) = tokio::time::timeout(self.idle, self.chunks.next()).await else {
            return Some(Err(ClientError::Idle(self.idle)));
        };
        match chunk? {
            Ok(chunk) => {
                let (within, exceeded) = self.counter.count(&chunk);
                self.failure = exceeded.map(|(what, limit)| ClientError::TooLarge { what, limit });
                Some(Ok(chunk.slice(..within)))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

/// The state of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More events must follow.
    Running,
    /// The peer may close the connection.
    MayEnd,
    Ended,
}

struct Reader {
    blocks: SseByteStream<BoxStream<'static, Result<Bytes, ClientError>>>,
    version: ProtocolVersion,
    progress: Progress,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<Numbered, ClientError>> {
        while self.progress != Progress::Ended {
            match self.blocks.next().await {
                Some(Ok(block)) => {
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
    fn block(&mut self, block: Sse) -> Option<Result<Numbered, ClientError>> {
        let data = block.data.filter(|data| !data.trim().is_empty())?;
        let seq = block.id.and_then(|id| event_id::parse(&id));
        Some(match event(data.as_bytes(), self.version) {
            Ok((event, progress)) => {
                self.progress = progress.unwrap_or(self.progress);
                Ok(Numbered { seq, event })
            }
            Err(error) => Err(self.fail(error)),
        })
    }

    const fn fail(&mut self, error: ClientError) -> ClientError {
        self.progress = Progress::Ended;
        error
    }
}

/// An event, and the state of the stream after it if the event determines it.
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
