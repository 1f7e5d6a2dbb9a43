//! Which of an agent's words are its answer: a whole result, else what it streamed, else what it said in its status.
//! Pure.

use caipe_a2a::model::{Artifact, Content, Part};
use serde_json::Value;

/// Most bytes of an answer that are kept, as many as an event of a stream may have.
const LARGEST: usize = 8 << 20;
/// Most artifacts and most status texts that are distinguished; further ones is joined to the last.
const MOST_PIECES: usize = 4096;
/// What stands at the end of an answer that was cut.
const TRUNCATED: &str = "\n[Output truncated]";

/// What an agent has said so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    result: Option<(Rank, String)>,
    pieces: Vec<Piece>,
    /// Status texts on the way.
    words: Vec<String>,
    /// The text of its last status.
    last: String,
    error: Option<String>,
    bytes: usize,
    is_cut: bool,
}

/// How much a whole result counts; among equals the newest does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Of an agent that it asked itself.
    Nested,
    Own,
    /// Its own, after it has asked others.
    Final,
}

/// An artifact that grows.
#[derive(Debug, Clone)]
struct Piece {
    id: String,
    is_narration: bool,
    text: String,
}

/// How a text is joined to the artifact that it is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    Add,
    Replace,
}

impl Answer {
    pub(super) fn result(&mut self, rank: Rank, text: String) {
        let outranked = self.result.as_ref().is_some_and(|(known, _)| *known > rank);
        if !outranked && !text.is_empty() {
            // It represents all pieces, so it has a limit of its own.
            self.result = Some((rank, cut(text, LARGEST).0));
        }
    }

    /// A piece of an artifact.
    pub(super) fn piece(&mut self, id: &str, is_narration: bool, text: String, join: Join) {
        let at = self.pieces.iter().position(|piece| piece.id == id && piece.is_narration == is_narration);
        if let (Some(piece), Join::Replace) = (at.and_then(|at| self.pieces.get(at)), join) {
            self.bytes = self.bytes.saturating_sub(piece.text.len());
        }
        let (text, room) = (self.bounded(text), self.pieces.len() < MOST_PIECES);
        match (at.and_then(|at| self.pieces.get_mut(at)), join) {
            (Some(piece), Join::Add) => piece.text.push_str(&text),
            (Some(piece), Join::Replace) => piece.text = text,
            (None, _) if room => {
                self.pieces.push(Piece { id: id.to_owned(), is_narration, text });
            }
            (None, _) => {
                if let Some(last) = self.pieces.last_mut() {
                    last.text.push_str(&text);
                }
            }
        }
    }

    /// A status text on the way that is no notification.
    pub(super) fn word(&mut self, text: String) {
        let full = self.words.len() >= MOST_PIECES;
        let text = self.bounded(text);
        match self.words.last_mut().filter(|_| full) {
            Some(last) => last.push_str(&text),
            None => self.words.push(text),
        }
    }

    /// The text of the status that it ends with.
    pub(super) fn last(&mut self, text: String) {
        self.last = self.bounded(text);
    }

    /// That it failed, whatever its status says.
    pub(super) fn error(&mut self, text: String) {
        self.error = Some(cut(text, LARGEST).0);
    }

    /// Why it failed, if it said so in an artifact.
    pub(super) fn failure(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// What was gathered from artifacts is void: they come again as a whole.
    pub(super) fn restart(&mut self) {
        *self = Self { words: std::mem::take(&mut self.words), ..Self::default() };
    }

    /// Whether the agent has said nothing that could be its answer.
    pub(super) fn is_empty(&self) -> bool {
        self.error.is_none() && self.text().is_none()
    }

    /// The answer; nothing if there is none.
    pub(super) fn text(&self) -> Option<String> {
        let whole = self.result.as_ref().map(|(_, text)| text.clone());
        whole.or_else(|| self.streamed(false)).or_else(|| self.spoken()).or_else(|| self.streamed(true))
    }

    /// The text of the last status, where that is the reason of a failure.
    pub(super) fn last_words(&self) -> Option<&str> {
        Some(self.last.trim()).filter(|text| !text.is_empty())
    }

    fn streamed(&self, narration: bool) -> Option<String> {
        let texts = self.pieces.iter().filter(|piece| piece.is_narration == narration);
        joined(texts.map(|piece| piece.text.as_str()))
    }

    fn spoken(&self) -> Option<String> {
        let repeats = self.words.iter().any(|word| word.trim().ends_with(self.last.trim()));
        let last = (!repeats).then_some(self.last.as_str());
        joined(self.words.iter().map(String::as_str).chain(last))
    }

    /// The text as far as there is room for it.
    fn bounded(&mut self, text: String) -> String {
        let (mut text, is_cut) = cut(text, LARGEST.saturating_sub(self.bytes));
        if is_cut && std::mem::replace(&mut self.is_cut, true) {
            // Once is enough.
            text.truncate(text.len() - TRUNCATED.len());
        }
        self.bytes = self.bytes.saturating_add(text.len());
        text
    }
}

/// At most so many bytes of a text, and whether there were more, which it then says.
fn cut(mut text: String, room: usize) -> (String, bool) {
    if text.len() <= room {
        return (text, false);
    }
    text.truncate(text.floor_char_boundary(room));
    text.push_str(TRUNCATED);
    (text, true)
}

/// Texts that were said one after the other; nothing if all are blank.
fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let texts: Vec<&str> = texts.filter(|text| !text.trim().is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// What an artifact says to a model: texts as they are, data as JSON, files by their name.
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
    /// It failed, and says why.
    Error(String),
    /// It is done, or wants to know more, and says so.
    Message(String),
}

/// The structured answer that a text ends in, if it ends in one and in nothing else: `status` and `message`.
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
#[path = "answer_tests.rs"]
mod tests;
