//! Limits of a response: its bytes, and the work of its longest line.

use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use rustix::time::{ClockId, clock_gettime};

/// Most bytes of one answer. The longest answers of today's models are under one megabyte.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// Counted in addition to the bytes of each frame, so that empty frames have a limit too.
const FRAME_BYTES: u64 = 8;

/// Most processor time for one line of the response. The client library copies an unfinished line with each piece that
/// arrives and shows nobody its length, so the time grows with the square of the length: a line of 1 MB in pieces of 1.4 kB
/// takes less than a second, one of 25 MB in the largest pieces about two.
const MAX_LINE_TIME: Duration = Duration::from_secs(2);

/// The pieces of a line that are not measured: a usual line has one or two, and to measure costs more than to read them.
const MEASURED_FROM: u32 = 16;

/// A response that is too long.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooLong {
    #[error("the answer is longer than {} MiB", MAX_BYTES / 1024 / 1024)]
    Answer,
    #[error("one line of the answer is too long: reading it took {} s of processor time without reaching its end", MAX_LINE_TIME.as_secs())]
    Line,
}

/// The size of the response to one call.
#[derive(Debug, Default)]
pub(super) struct Meter {
    bytes: AtomicU64,
    frames: AtomicU64,
    payloads: AtomicU64,
}

impl Meter {
    fn check_bytes(&self) -> Result<(), TooLong> {
        let frames = self.frames.load(Ordering::Relaxed).saturating_mul(FRAME_BYTES);
        let bytes = self.bytes.load(Ordering::Relaxed).saturating_add(frames);
        if bytes > MAX_BYTES { Err(TooLong::Answer) } else { Ok(()) }
    }

    /// Whether the response has frames, but no events: for example a web page or plain JSON.
    pub(super) fn is_not_sse(&self) -> bool {
        self.frames.load(Ordering::Relaxed) > 0 && self.payloads.load(Ordering::Relaxed) == 0
    }
}

impl ChatFrameSink for Meter {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let bytes = u64::try_from(frame.data.len()).unwrap_or(u64::MAX);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.payloads.fetch_add(u64::from(bytes > 0), Ordering::Relaxed);
    }
}

/// The processor time spent on the line that is being read.
#[derive(Debug, Default)]
pub(super) struct LineTime {
    frames: u64,
    spent: Duration,
    /// The number of pieces of the line, at least.
    pieces: u32,
    /// Whether this task went through the queue since the last piece.
    queued: bool,
}

impl LineTime {
    /// Polls the response once, and ends it where it is too long.
    ///
    /// A poll of the client library ends only when no piece is ready. Another worker that reads the connection meanwhile could
    /// keep it busy for ever, and no limit would be checked. A task that tokio takes from its queue, and not from the slot of
    /// the last task that was woken, keeps the connection's task for its own worker, so a later piece of a line goes through
    /// the queue.
    pub(super) fn poll<T>(
        &mut self,
        meter: &Meter,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, TooLong>> {
        if self.pieces < MEASURED_FROM {
            let polled = poll(context);
            meter.check_bytes()?;
            self.add(meter, Duration::ZERO)?;
            return polled.map(Ok);
        }
        if !std::mem::replace(&mut self.queued, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.queued = false;
        let started = thread_time();
        let polled = poll(context);
        let spent = thread_time().saturating_sub(started);
        let checked = meter.check_bytes().and_then(|()| self.add(meter, spent));
        match checked {
            Ok(()) => polled.map(Ok),
            Err(too_long) => Poll::Ready(Err(too_long)),
        }
    }

    fn add(&mut self, meter: &Meter, spent: Duration) -> Result<(), TooLong> {
        let frames = meter.frames.load(Ordering::Relaxed);
        if frames != self.frames {
            *self = Self { frames, ..Self::default() };
            return Ok(());
        }
        self.pieces = self.pieces.saturating_add(1);
        self.spent = self.spent.saturating_add(spent);
        if self.spent > MAX_LINE_TIME { Err(TooLong::Line) } else { Ok(()) }
    }
}

/// The processor time of this thread, which other work of the machine does not advance.
fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn the_time_of_a_line_starts_again_with_each_frame() {
        let (meter, mut line) = (Meter::default(), LineTime::default());
        let second = Duration::from_secs(1);
        for _ in 0..10 {
            meter.frames.fetch_add(1, Ordering::Relaxed);
            assert_eq!(line.add(&meter, MAX_LINE_TIME * 2), Ok(()), "a frame came");
            assert_eq!(line.add(&meter, second), Ok(()));
            assert_eq!(line.add(&meter, second), Ok(()));
        }
        assert_eq!(line.add(&meter, Duration::from_nanos(1)), Err(TooLong::Line));
    }

    #[test]
    fn empty_frames_end_an_answer_too() {
        let (meter, mut line) = (Meter::default(), LineTime::default());
        meter.frames.store(MAX_BYTES / FRAME_BYTES, Ordering::Relaxed);
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(line.poll(&meter, &mut context, |_| Poll::<()>::Pending), Poll::Pending);
        meter.frames.fetch_add(1, Ordering::Relaxed);
        let ended = line.poll(&meter, &mut context, |_| Poll::<()>::Pending);
        assert_eq!(ended, Poll::Ready(Err(TooLong::Answer)));
    }
}
