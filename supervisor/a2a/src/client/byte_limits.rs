//! Limits of the bytes of a stream. Pure.

#[derive(Debug, Clone, Copy)]
pub(super) struct ByteLimits {
    pub(super) line: usize,
    /// One event: all lines up to an empty one.
    pub(super) event: usize,
    pub(super) stream: u64,
}

/// The part of the stream that is too large, and its limit.
pub(super) type Exceeded = (&'static str, u64);

/// Counts lines, events and bytes, wherever the chunks are cut.
#[derive(Debug)]
pub(super) struct ByteCounter {
    limits: ByteLimits,
    line: usize,
    event: usize,
    stream: u64,
    /// A line feed that follows belongs to the line end before it.
    after_return: bool,
}

impl ByteCounter {
    pub(super) const fn new(limits: ByteLimits) -> Self {
        Self { limits, line: 0, event: 0, stream: 0, after_return: false }
    }

    /// The number of bytes of the chunk that are within the limits, and the limit that the next byte exceeds.
    pub(super) fn count(&mut self, chunk: &[u8]) -> (usize, Option<Exceeded>) {
        let left = usize::try_from(self.limits.stream.saturating_sub(self.stream)).unwrap_or(usize::MAX);
        let within = chunk.get(..left).unwrap_or(chunk);
        for (at, byte) in within.iter().enumerate() {
            if let Some(exceeded) = self.byte(*byte) {
                return (at, Some(exceeded));
            }
        }
        self.stream = self.stream.saturating_add(within.len() as u64);
        (within.len(), (within.len() < chunk.len()).then_some(("a stream", self.limits.stream)))
    }

    fn byte(&mut self, byte: u8) -> Option<Exceeded> {
        let follows_return = std::mem::replace(&mut self.after_return, byte == b'\r');
        match byte {
            b'\n' if follows_return => {}
            b'\n' | b'\r' => self.end_line(),
            _ => {
                self.line += 1;
                self.event += 1;
            }
        }
        if self.line > self.limits.line {
            return Some(("a line of a stream", self.limits.line as u64));
        }
        (self.event > self.limits.event).then_some(("an event of a stream", self.limits.event as u64))
    }

    const fn end_line(&mut self) {
        if self.line == 0 {
            self.event = 0;
        }
        self.line = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(body: &[u8], size: usize, limits: ByteLimits) -> (usize, Option<Exceeded>) {
        let mut counter = ByteCounter::new(limits);
        let mut total = 0;
        for chunk in body.chunks(size) {
            let (within, exceeded) = counter.count(chunk);
            total += within;
            if exceeded.is_some() {
                return (total, exceeded);
            }
        }
        (total, None)
    }

    #[test]
    fn each_limit_is_found_at_the_same_byte_however_the_chunks_are_cut() {
        let limits = |line, event, stream| ByteLimits { line, event, stream };
        for (body, limits, expected) in [
            (&b"1234\n1234\n\n1234\n"[..], limits(4, 8, 100), (16, None)),
            (b"12345", limits(4, 8, 100), (4, Some(("a line of a stream", 4)))),
            (b"1234\n1234\n1", limits(4, 8, 100), (10, Some(("an event of a stream", 8)))),
            (b"1234\r\n1234\r\n\r\n1234\r\n", limits(4, 8, 100), (20, None)),
            (b"1234\r1234\r\r1234\r", limits(4, 8, 100), (16, None)),
            (b"12\n\n12\n\n12", limits(4, 8, 9), (9, Some(("a stream", 9)))),
            (b"12\n\n12\n\n1", limits(4, 8, 9), (9, None)),
        ] {
            for size in 1..=body.len() {
                assert_eq!(
                    count(body, size, limits),
                    expected,
                    "{:?} by {size}",
                    String::from_utf8_lossy(body)
                );
            }
        }
    }
}
