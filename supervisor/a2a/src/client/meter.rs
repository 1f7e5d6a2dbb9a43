//! Counts what comes in on a stream. Pure.

/// What may come in at most, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caps {
    /// One line.
    pub(super) line: usize,
    /// One event: all lines up to an empty one.
    pub(super) event: usize,
    /// Everything.
    pub(super) stream: u64,
}

/// A cap that was passed: what is too large, and how large it may be.
pub(super) type Passed = (&'static str, u64);

/// Counts lines, events and bytes, wherever the chunks are cut.
#[derive(Debug)]
pub(super) struct Meter {
    caps: Caps,
    line: usize,
    event: usize,
    stream: u64,
    /// A line feed that follows belongs to the line end before it.
    after_return: bool,
}

impl Meter {
    pub(super) const fn new(caps: Caps) -> Self {
        Self { caps, line: 0, event: 0, stream: 0, after_return: false }
    }

    /// How many bytes of the chunk are within the caps, and which one the next byte passes.
    pub(super) fn count(&mut self, chunk: &[u8]) -> (usize, Option<Passed>) {
        let left = usize::try_from(self.caps.stream.saturating_sub(self.stream)).unwrap_or(usize::MAX);
        let within = chunk.get(..left).unwrap_or(chunk);
        for (at, byte) in within.iter().enumerate() {
            if let Some(passed) = self.byte(*byte) {
                return (at, Some(passed));
            }
        }
        self.stream = self.stream.saturating_add(within.len() as u64);
        (within.len(), (within.len() < chunk.len()).then_some(("a stream", self.caps.stream)))
    }

    fn byte(&mut self, byte: u8) -> Option<Passed> {
        let follows_return = std::mem::replace(&mut self.after_return, byte == b'\r');
        match byte {
            b'\n' if follows_return => {}
            b'\n' | b'\r' => self.end_line(),
            _ => {
                self.line += 1;
                self.event += 1;
            }
        }
        if self.line > self.caps.line {
            return Some(("a line of a stream", self.caps.line as u64));
        }
        (self.event > self.caps.event).then_some(("an event of a stream", self.caps.event as u64))
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

    fn count(body: &[u8], size: usize, caps: Caps) -> (usize, Option<Passed>) {
        let mut meter = Meter::new(caps);
        let mut total = 0;
        for chunk in body.chunks(size) {
            let (within, passed) = meter.count(chunk);
            total += within;
            if passed.is_some() {
                return (total, passed);
            }
        }
        (total, None)
    }

    #[test]
    fn each_cap_is_found_at_the_same_byte_however_the_chunks_are_cut() {
        let caps = |line, event, stream| Caps { line, event, stream };
        for (body, caps, expected) in [
            (&b"1234\n1234\n\n1234\n"[..], caps(4, 8, 100), (16, None)),
            (b"12345", caps(4, 8, 100), (4, Some(("a line of a stream", 4)))),
            (b"1234\n1234\n1", caps(4, 8, 100), (10, Some(("an event of a stream", 8)))),
            (b"1234\r\n1234\r\n\r\n1234\r\n", caps(4, 8, 100), (20, None)),
            (b"1234\r1234\r\r1234\r", caps(4, 8, 100), (16, None)),
            (b"12\n\n12\n\n12", caps(4, 8, 9), (9, Some(("a stream", 9)))),
            (b"12\n\n12\n\n1", caps(4, 8, 9), (9, None)),
        ] {
            for size in 1..=body.len() {
                assert_eq!(
                    count(body, size, caps),
                    expected,
                    "{:?} by {size}",
                    String::from_utf8_lossy(body)
                );
            }
        }
    }
}
