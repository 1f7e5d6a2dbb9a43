//! Buffers the last partial word of a streamed answer, so that clients never show half of a Markdown mark.

use serde::{Deserialize, Serialize};

/// A word of more characters is emitted in parts.
const LONGEST_HELD: usize = 80;

/// The incomplete word.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WordBuffer {
    held: String,
}

impl WordBuffer {
    /// Adds the next piece and returns the text to emit: all up to the last boundary, or everything once the word is too long.
    pub(super) fn push(&mut self, piece: &str) -> String {
        if let Some(at) = piece.rfind(is_boundary) {
            let end = at + piece.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
            let (whole, partial) = piece.split_at(end);
            let shown = std::mem::take(&mut self.held) + whole;
            self.held.push_str(partial);
            return shown;
        }
        self.held.push_str(piece);
        if self.held.chars().count() > LONGEST_HELD { self.flush() } else { String::new() }
    }

    /// Returns the buffered word.
    pub(super) fn flush(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

fn is_boundary(c: char) -> bool {
    c.is_whitespace() || ".,!?:;-)]}>*#/\\[({<\"'`".contains(c)
}
