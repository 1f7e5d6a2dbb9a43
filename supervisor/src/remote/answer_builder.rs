//! The answer of an agent: a whole result, else the streamed text, else the status texts. Pure.

use caipe_a2a::model::{Artifact, Content, Part};
use serde_json::Value;

/// Most bytes of an answer, as of an event of a stream.
const LARGEST: usize = 8 << 20;
/// Most artifacts and most status texts that are distinguished; further text is appended to the last one.
const MOST_PIECES: usize = 4096;
/// The end of an answer that was cut.
const TRUNCATED: &str = "\n[Output truncated]";

/// The texts of an agent so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    result: Option<(ResultPriority, String)>,
    pieces: Vec<Piece>,
    /// The status texts of the running task.
    words: Vec<String>,
    /// The text of its last status.
    last: String,
    error: Option<String>,
    bytes: usize,
    is_cut: bool,
}

/// The rank of a whole result. The newest result of the highest rank is the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ResultPriority {
    /// The result of a nested agent.
    Nested,
    Own,
    /// The agent's own final result.
    Final,
}

/// The text of a streamed artifact.
#[derive(Debug, Clone)]
struct Piece {
    id: String,
    is_narration: bool,
    text: String,
}

/// How a text changes its artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    Add,
    Replace,
}

impl Answer {
    pub(super) fn set_result(&mut self, rank: ResultPriority, text: String) {
        let outranked = self.result.as_ref().is_some_and(|(known, _)| *known > rank);
        if !outranked && !text.is_empty() {
            // A whole result replaces the pieces, so it has a limit of its own.
            self.result = Some((rank, cut(text, LARGEST).0));
        }
    }

    /// Whether there is a piece of this artifact.
    pub(super) fn has_piece(&self, id: &str) -> bool {
        self.pieces.iter().any(|piece| piece.id == id)
    }

    /// A piece of an artifact.
    pub(super) fn piece(&mut self, id: &str, is_narration: bool, text: String, join: Join) {
        if join == Join::Replace {
            let replaced = |piece: &&Piece| piece.id == id;
            let bytes: usize = self.pieces.iter().filter(replaced).map(|piece| piece.text.len()).sum();
            self.bytes = self.bytes.saturating_sub(bytes);
            self.pieces.retain(|piece| piece.id != id || piece.is_narration == is_narration);
            self.pieces.iter_mut().filter(|piece| piece.id == id).for_each(|piece| piece.text.clear());
        }
        let (text, room) = (self.bounded(text), self.pieces.len() < MOST_PIECES);
        let known = |piece: &&mut Piece| piece.id == id && piece.is_narration == is_narration;
        match self.pieces.iter_mut().find(known) {
            Some(piece) => piece.text.push_str(&text),
            None if room => {
                self.pieces.push(Piece { id: id.to_owned(), is_narration, text });
            }
            None => {
                if let Some(last) = self.pieces.last_mut() {
                    last.text.push_str(&text);
                }
            }
        }
    }

    /// A status text of the running task that is not a notification.
    pub(super) fn add_status_text(&mut self, text: String) {
        let full = self.words.len() >= MOST_PIECES;
        let text = self.bounded(text);
        match self.words.last_mut().filter(|_| full) {
            Some(last) => last.push_str(&text),
            None => self.words.push(text),
        }
    }

    /// The text of the final status.
    pub(super) fn set_final_status(&mut self, text: String) {
        self.last = self.bounded(text);
    }

    /// An error, which takes precedence over the status.
    pub(super) fn set_error(&mut self, text: String) {
        self.error = Some(cut(text, LARGEST).0);
    }

    /// The text of the error artifact.
    pub(super) fn failure(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Drops everything but the status texts, because all artifacts follow again.
    pub(super) fn discard_artifacts(&mut self) {
        *self = Self { words: std::mem::take(&mut self.words), ..Self::default() };
    }

    /// Whether there is neither an answer nor an error.
    pub(super) fn is_empty(&self) -> bool {
        self.error.is_none() && self.text().is_none()
    }

    /// The answer, if there is one.
    pub(super) fn text(&self) -> Option<String> {
        let whole = self.result.as_ref().map(|(_, text)| text.clone());
        whole.or_else(|| self.streamed(false)).or_else(|| self.status_text()).or_else(|| self.streamed(true))
    }

    /// The text of the final status.
    pub(super) fn last_words(&self) -> Option<&str> {
        Some(self.last.trim()).filter(|text| !text.is_empty())
    }

    fn streamed(&self, narration: bool) -> Option<String> {
        let texts = self.pieces.iter().filter(|piece| piece.is_narration == narration);
        joined(texts.map(|piece| piece.text.as_str()))
    }

    fn status_text(&self) -> Option<String> {
        let repeats = self.words.iter().any(|word| word.trim().ends_with(self.last.trim()));
        let last = (!repeats).then_some(self.last.as_str());
        joined(self.words.iter().map(String::as_str).chain(last))
    }

    /// The part of the text for which there is room.
    fn bounded(&mut self, text: String) -> String {
        let (mut text, is_cut) = cut(text, LARGEST.saturating_sub(self.bytes));
        if is_cut && std::mem::replace(&mut self.is_cut, true) {
            // The mark is in the answer already.
            text.truncate(text.len() - TRUNCATED.len());
        }
        self.bytes = self.bytes.saturating_add(text.len());
        text
    }
}

/// Cuts a text to `room` bytes and marks it as truncated. Returns whether it was cut.
fn cut(mut text: String, room: usize) -> (String, bool) {
    if text.len() <= room {
        return (text, false);
    }
    text.truncate(text.floor_char_boundary(room));
    text.push_str(TRUNCATED);
    (text, true)
}

/// The texts that are not blank, one per line; `None` if all are blank.
fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let texts: Vec<&str> = texts.filter(|text| !text.trim().is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// The content of an artifact for a model: text as it is, data as JSON, files by their names.
pub(super) fn content(artifact: &Artifact) -> String {
    artifact.parts.iter().filter_map(part).collect::<Vec<_>>().concat()
}

fn part(part: &Part) -> Option<String> {
    let name = part.filename.as_deref().unwrap_or("file");
    match &part.content {
        Content::Text(text) => Some(text.clone()),
        Content::Data(data) => Some(data.to_string()),
        Content::Url(url) => Some(format!("[{name}: {url}]")),
        Content::Raw(_) => Some(format!("[{name}]")),
        Content::Unknown => None,
    }
}

/// The structured answer of an upstream agent, which its model writes at the end of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Structured {
    Error(String),
    /// A result or a question.
    Message(String),
}

/// The structured answer at the end of a text: an object with `status` and `message` only.
pub(super) fn structured(text: &str) -> Option<Structured> {
    let text = text.trim_end();
    let at = text.rfind("{\"status\"").or_else(|| text.rfind('{'))?;
    let value: Value = serde_json::from_str(text.get(at..)?).ok()?;
    let object = value.as_object().filter(|object| object.len() == 2)?;
    let message = object.get("message")?.as_str()?.to_owned();
    match object.get("status")?.as_str()? {
        "error" => Some(Structured::Error(message)),
        "completed" | "input_required" => Some(Structured::Message(message)),
        _ => None,
    }
}

#[cfg(test)]
#[path = "answer_builder_tests.rs"]
mod tests;
