//! A text of a skill, compressed in memory.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Serialize, Serializer};

/// A text in half of its memory: a catalogue has thousands of texts, of which agents read a few.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text {
    deflated: Box<[u8]>,
    /// In bytes.
    len: usize,
}

impl Text {
    /// The length in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The whole text.
    pub fn read(&self) -> String {
        let mut text = String::with_capacity(self.len);
        // What this process compressed in memory is complete.
        let _ = DeflateDecoder::new(&*self.deflated).read_to_string(&mut text);
        text
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(text.len() / 2), Compression::default());
        // Writing to memory does not fail.
        let _ = encoder.write_all(text.as_bytes());
        let deflated = encoder.finish().unwrap_or_default().into();
        Self { deflated, len: text.len() }
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.read())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Text;

    proptest! {
        #[test]
        fn a_text_is_read_as_it_was_written(text in ".*") {
            let compressed = Text::from(text.as_str());
            prop_assert_eq!(compressed.len(), text.len());
            prop_assert_eq!(compressed.read(), text);
        }
    }

    #[test]
    fn prose_takes_less_memory() {
        let text = include_str!("../skills/incident-triage/SKILL.md");
        assert!(Text::from(text).deflated.len() < text.len() * 6 / 10);
    }
}
