//! Counts what a server sends, frame by frame, before anybody reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};

/// Most bytes of one answer. The longest answers of today's models are under one megabyte.
pub(super) const MOST_BYTES: u64 = 32 * 1024 * 1024;

/// What one call has received. A clone counts into the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    frames: AtomicU64,
    payloads: AtomicU64,
}

impl Meter {
    pub(super) fn is_over(&self) -> bool {
        self.counts.bytes.load(Ordering::Relaxed) > MOST_BYTES
    }

    /// Something came, but nothing of the protocol: a web page, say, or a plain JSON answer.
    pub(super) fn is_nonsense(&self) -> bool {
        self.counts.frames.load(Ordering::Relaxed) > 0 && self.counts.payloads.load(Ordering::Relaxed) == 0
    }
}

impl ChatFrameSink for Meter {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let bytes = u64::try_from(frame.data.len()).unwrap_or(u64::MAX);
        self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.counts.frames.fetch_add(1, Ordering::Relaxed);
        self.counts.payloads.fetch_add(u64::from(bytes > 0), Ordering::Relaxed);
    }
}
