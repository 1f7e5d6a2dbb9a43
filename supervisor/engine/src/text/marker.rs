//! Marker mode: the answer is the text after `[FINAL ANSWER]`.

use serde::{Deserialize, Serialize};

/// Both spellings; they have the same length.
const MARKERS: [&str; 2] = ["[FINAL ANSWER]", "[FINAL_ANSWER]"];

/// How many characters are buffered because they may begin a marker.
const HELD_CHARS: usize = 14;

/// Separates narration from answer while the text arrives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct MarkerSplit {
    held: String,
    answering: bool,
    begun: bool,
}

/// The text to emit after a piece of text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) narration: String,
    pub(super) answer: String,
}

impl MarkerSplit {
    /// Adds the next piece.
    pub(super) fn push(&mut self, text: &str) -> Shown {
        if self.answering {
            return Shown { narration: String::new(), answer: self.answer(text) };
        }
        self.held.push_str(text);
        if let Some((narration, answer)) = split_at_marker(&self.held) {
            let (narration, answer) = (narration.to_owned(), answer.to_owned());
            self.held.clear();
            self.answering = true;
            return Shown { narration, answer: self.answer(&answer) };
        }
        Shown { narration: self.release(), answer: String::new() }
    }

    /// Returns the buffered text, once no marker can follow.
    pub(super) fn flush(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Returns the buffered text except its newest characters.
    fn release(&mut self) -> String {
        let cut = self.held.char_indices().rev().nth(HELD_CHARS - 1).map_or(0, |(at, _)| at);
        let rest = self.held.split_off(cut);
        std::mem::replace(&mut self.held, rest)
    }

    fn answer(&mut self, text: &str) -> String {
        let text = if self.begun { text } else { text.trim_start_matches(['\r', '\n']) };
        self.begun |= !text.is_empty();
        text.to_owned()
    }
}

/// The text on both sides of the first marker.
fn split_at_marker(text: &str) -> Option<(&str, &str)> {
    MARKERS.iter().filter_map(|marker| text.split_once(marker)).min_by_key(|(before, _)| before.len())
}

/// The answer in a whole text, if it has a marker.
pub(crate) fn after_marker(text: &str) -> Option<&str> {
    split_at_marker(text).map(|(_, answer)| answer.trim_start_matches(['\r', '\n']))
}
