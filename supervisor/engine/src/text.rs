//! The text of a run: separates the answer from the narration while the text arrives.
//!
//! Each character is emitted once, as soon as possible: the emitted pieces of a turn, joined, are the turn's text, in
//! whatever pieces the model sends it.

mod json_string;
mod marker;
mod word_buffer;

use serde::{Deserialize, Serialize};

use crate::abilities::AnswerMode;
use crate::event::{Emit, EventKind, TextRole};
use crate::names::CallId;

use json_string::ContentReader;
use marker::MarkerSplit;
pub(crate) use marker::after_marker;
use word_buffer::WordBuffer;

/// The text of this run so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnswerText {
    /// The text of the turn under way.
    pub turn: String,
    /// The answer in the response call of the turn under way.
    pub answer: String,
    /// How the model marks the answer in the turn under way.
    mode: AnswerMode,
    /// Whether the turn under way is the last one, in which all text is the answer.
    last: bool,
    #[serde(alias = "told")]
    shown: Shown,
    /// Whether the turn has begun a call, so that its text is narration.
    calling: bool,
    /// Whether `Composing` was emitted; it is emitted once.
    composing: bool,
    /// Marker mode: splits the answer from the narration.
    marker: MarkerSplit,
    /// Structured mode: the response call whose arguments are being read.
    response: Option<Responding>,
}

/// How much of a turn was emitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Shown {
    #[default]
    Nothing,
    /// Text, and none of it as the answer.
    Text,
    /// Some of the answer.
    Answer,
}

/// A response call whose arguments are arriving.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Responding {
    call: CallId,
    reader: ContentReader,
    words: WordBuffer,
}

impl AnswerText {
    pub(crate) fn begin_turn(&mut self, mode: AnswerMode, last: bool) {
        *self = Self { mode, last, composing: self.composing, ..Self::default() };
    }

    /// Adds text of the model.
    pub(crate) fn push(&mut self, text: String, out: &mut impl Emit) {
        if text.is_empty() {
            return;
        }
        self.turn.push_str(&text);
        if self.mode == AnswerMode::Marker {
            let shown = self.marker.push(&text);
            self.emit_text(TextRole::Narration, shown.narration, out);
            self.emit_text(TextRole::Answer, shown.answer, out);
        } else {
            self.emit_text(self.role(), text, out);
        }
    }

    pub(crate) fn begin_call(&mut self, id: &CallId, is_response: bool, out: &mut impl Emit) {
        if self.mode == AnswerMode::Structured && is_response {
            self.compose(out);
            if self.response.is_none() {
                self.response = Some(Responding { call: id.clone(), ..Responding::default() });
            }
            return;
        }
        self.calling = true;
        self.flush_marker(out);
    }

    /// Adds a piece of a call's arguments.
    pub(crate) fn push_arguments(&mut self, id: &str, piece: &str, out: &mut impl Emit) {
        let Some(response) = self.response.as_mut().filter(|response| response.call == id) else { return };
        let known = self.answer.len();
        response.reader.read(piece, &mut self.answer);
        let shown = response.words.push(self.answer.get(known..).unwrap_or_default());
        self.emit_text(TextRole::Answer, shown, out);
    }

    /// Emits the rest of the finished turn's text. [`AnswerText::conclude`] emits the answer in a response call.
    pub(crate) fn complete(&mut self, content: &str, with_calls: bool, out: &mut impl Emit) {
        self.calling |= with_calls;
        if let Some(rest) = content.strip_prefix(self.turn.as_str()) {
            self.push(rest.to_owned(), out);
        } else if !self.turn.starts_with(content) {
            // The streamed text differs from the final one.
            self.void(out);
            *self = self.emptied();
            self.push(content.to_owned(), out);
        }
        self.flush_marker(out);
    }

    /// Emits the rest of the answer, after [`AnswerText::complete`].
    pub(crate) fn conclude(&mut self, answer: &str, out: &mut impl Emit) {
        self.compose(out);
        let held = self.response.take().map(|mut response| response.words.flush()).unwrap_or_default();
        if let Some(shown) = self.answer.strip_suffix(&held) {
            self.answer.truncate(shown.len());
        }
        if let Some(rest) = answer.strip_prefix(self.answer.as_str()) {
            self.emit_text(TextRole::Answer, rest.to_owned(), out);
        } else {
            self.void(out);
            self.emit_text(TextRole::Answer, answer.to_owned(), out);
        }
        answer.clone_into(&mut self.answer);
    }

    /// Emits the buffered text of a turn that will not be complete.
    pub(crate) fn release(&mut self, out: &mut impl Emit) {
        self.flush_marker(out);
        if let Some(mut response) = self.response.take() {
            let held = response.words.flush();
            self.emit_text(TextRole::Answer, held, out);
        }
    }

    /// Resets the emitted text of the turn, if there is any.
    pub(crate) fn void(&mut self, out: &mut impl Emit) {
        if self.shown != Shown::Nothing {
            out.emit(EventKind::TextReset);
        }
        self.shown = Shown::Nothing;
        self.answer.clear();
    }

    /// Resets an emitted answer that is not the final one.
    pub(crate) fn retract_answer(&mut self, out: &mut impl Emit) {
        if self.shown == Shown::Answer {
            self.void(out);
        }
    }

    /// The answer of the turn under way or, without one, its text.
    pub(crate) fn so_far(&self) -> &str {
        let spoken = if self.answer.trim().is_empty() { &self.turn } else { &self.answer };
        spoken.trim()
    }

    /// The same turn without text.
    fn emptied(&self) -> Self {
        let Self { mode, last, calling, composing, .. } = *self;
        Self { mode, last, calling, composing, ..Self::default() }
    }

    fn compose(&mut self, out: &mut impl Emit) {
        if !self.composing {
            self.composing = true;
            out.emit(EventKind::Composing);
        }
    }

    const fn role(&self) -> TextRole {
        match self.mode {
            AnswerMode::Structured if self.last => TextRole::Answer,
            AnswerMode::Structured if self.calling => TextRole::Narration,
            _ => TextRole::Plain,
        }
    }

    fn flush_marker(&mut self, out: &mut impl Emit) {
        let held = self.marker.flush();
        self.emit_text(TextRole::Narration, held, out);
    }

    fn emit_text(&mut self, role: TextRole, text: String, out: &mut impl Emit) {
        if !text.is_empty() {
            self.shown = self.shown.max(if role == TextRole::Answer { Shown::Answer } else { Shown::Text });
            out.text(role, text);
        }
    }
}

#[cfg(test)]
#[path = "text/text_tests.rs"]
mod tests;
