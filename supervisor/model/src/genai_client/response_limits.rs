//! Counts the frames of a response before they are parsed.

use std::sync::atomic::{AtomicU64, Ordering};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};

/// Most bytes of one answer. The longest answers of today's models are under one megabyte.
pub(super) const MOST_BYTES: u64 = 32 * 1024 * 1024;

/// The size of the response to one call.
#[derive(Debug, Default)]
pub(super) struct Meter {
    bytes: AtomicU64,
    frames: AtomicU64,
    payloads: AtomicU64,
}

impl Meter {
    pub(super) fn exceeds_limit(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > MOST_BYTES
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
