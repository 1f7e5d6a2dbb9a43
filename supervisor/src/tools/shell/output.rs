//! The output of a command, of which the beginning and the end are kept.

use std::collections::VecDeque;
use std::io::{self, Read};

/// The bytes that are kept, and the number of the others.
#[derive(Debug)]
pub(super) struct BoundedOutput {
    /// Most bytes of each part.
    most: usize,
    beginning: Vec<u8>,
    end: VecDeque<u8>,
    missing: u64,
}

impl BoundedOutput {
    pub(super) fn new(most: usize) -> Self {
        Self { most: most / 2, beginning: Vec::new(), end: VecDeque::new(), missing: 0 }
    }

    /// Reads to the end, so that no writer waits.
    pub(super) fn read(&mut self, mut stream: impl Read) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => self.push(buffer.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.most - self.beginning.len()));
        self.beginning.extend(first);
        // Only the last of them can stay.
        let (lost, rest) = rest.split_at(rest.len().saturating_sub(self.most));
        let surplus = (self.end.len() + rest.len()).saturating_sub(self.most);
        self.end.drain(..surplus);
        self.end.extend(rest);
        self.missing += (lost.len() + surplus) as u64;
    }

    /// The text. A line says what is missing.
    pub(super) fn text(&self) -> String {
        let end: Vec<u8> = self.end.iter().copied().collect();
        if self.missing == 0 {
            return String::from_utf8_lossy(&[self.beginning.as_slice(), &end].concat()).into_owned();
        }
        let (beginning, end) = (String::from_utf8_lossy(&self.beginning), String::from_utf8_lossy(&end));
        format!("{beginning}\n[{} bytes of output are missing here]\n{end}", self.missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(most: usize, parts: &[&str]) -> String {
        let mut output = BoundedOutput::new(most);
        for part in parts {
            output.push(part.as_bytes());
        }
        output.text()
    }

    #[test]
    fn keeps_everything_up_to_the_limit() {
        assert_eq!(text(8, &[]), "");
        assert_eq!(text(8, &["abc", "defgh"]), "abcdefgh");
        assert_eq!(text(8, &["abcdefgh"]), "abcdefgh");
        assert_eq!(text(8, &["ab\u{e4}", "\u{e4}gh"]), "ab\u{e4}\u{e4}gh");
    }

    #[test]
    fn keeps_the_beginning_and_the_end() {
        let expected = "abcd\n[2 bytes of output are missing here]\nghij";
        assert_eq!(text(8, &["abcdefghij"]), expected);
        assert_eq!(text(8, &["a", "bcdef", "g", "hij"]), expected);
        assert_eq!(text(8, &["abcdefg", "hij"]), expected);
        let mut flood = BoundedOutput::new(8);
        flood.read(io::repeat(b'x').take(1 << 24)).unwrap();
        assert_eq!(flood.text(), format!("xxxx\n[{} bytes of output are missing here]\nxxxx", (1 << 24) - 8));
    }
}
