//! Brings the messages of a turn to what they have to show, one call of Slack at a time. Pure.
//!
//! [`Delivery::next`] compares what is to be shown with what Slack has confirmed, and [`Delivery::done`] records the result
//! of a call. So a call that is rejected or limited is replaced by a later one with all that is missing by then.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::text::excerpt;
use crate::transcript::Desired;

/// The failures of one message after which the delivery gives up.
const MOST_FAILURES: u32 = 5;
/// The most characters of a section's text.
const SECTION: usize = 2_900;

/// A call of Slack's Web API. Its target is added by the caller.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    /// `chat.startStream`
    Start { chunks: Vec<Value> },
    /// `chat.appendStream`
    Append { ts: String, chunks: Vec<Value> },
    /// `chat.stopStream`
    Stop { ts: String, chunks: Vec<Value>, blocks: Vec<Value> },
    /// `chat.postMessage`
    Post { text: String, blocks: Vec<Value> },
    /// `chat.update`
    Update { ts: String, text: String, blocks: Vec<Value> },
    /// `chat.delete`
    Delete { ts: String },
}

/// Why a call failed, as far as the delivery can react.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The stream has expired, or the message is too long for more.
    StreamEnded,
    /// Streams are not available here.
    NoStreams,
    /// It is unknown whether Slack did it.
    Ambiguous,
    /// The channel, the thread or the message does not exist any more, or the bot may not write there.
    Gone,
    Rejected,
}

/// A message that streams.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Streamed {
    ts: String,
    /// The index of the page, and the part of it that Slack has confirmed, in bytes.
    page: usize,
    to: usize,
    /// The checksum of that part.
    #[serde(default)]
    checksum: u64,
    open: bool,
}

impl Streamed {
    /// Whether what it shows is still the start of its page.
    fn is_part_of(&self, desired: &Desired) -> bool {
        let page = desired.pages.get(self.page).map_or("", String::as_str);
        // The end of an answer loses its white space, which may be shown.
        let start = page.get(..self.to.min(page.len()));
        start.is_some_and(|start| checksum(0, start) == self.checksum)
    }
}

/// Continues a checksum (FNV-1a) with the characters of a text that are not white space.
fn checksum(before: u64, text: &str) -> u64 {
    let visible = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    visible.fold(before, |sum, byte| (sum ^ u64::from(byte).wrapping_add(1)).wrapping_mul(0x0100_0000_01b3))
}

/// The state of a turn's messages as Slack has confirmed it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other, and all are saved")]
pub(crate) struct Delivery {
    /// Whether messages are posted and updated as a whole, instead of streamed.
    whole: bool,
    streams: Vec<Streamed>,
    /// The time stamps of the messages in the whole mode, in the order of the pages.
    messages: Vec<String>,
    /// What these messages show; not known after a restart.
    #[serde(skip)]
    shown: Vec<Vec<Value>>,
    /// The confirmed chunk of each card in the open stream, and the confirmed heading.
    #[serde(default)]
    cards: HashMap<String, Value>,
    #[serde(default)]
    title: String,
    /// Whether a call that changes a stream has begun, and its result is not recorded.
    #[serde(default)]
    begun: bool,
    /// The stream that is to be stopped before its message is updated.
    to_stop: Option<String>,
    #[serde(skip)]
    failures: u32,
    finished: bool,
    abandoned: bool,
}

impl Delivery {
    /// A delivery that posts and updates whole messages.
    pub(crate) fn without_streams() -> Self {
        Self { whole: true, ..Self::default() }
    }

    /// Continues after a restart: a stream in the same place, unless it is not known what it shows.
    pub(crate) fn restored(mut self) -> Self {
        if self.begun {
            self.begun = false;
            self.replace();
        }
        self
    }

    /// Notes that a call begins. Returns whether that must be saved, so that a restart before its result repeats no text.
    pub(crate) const fn begin(&mut self, call: &Call) -> bool {
        self.begun = !self.whole && matches!(call, Call::Append { .. } | Call::Stop { .. });
        self.begun
    }

    /// Whether nothing is left to do for a turn that has ended.
    pub(crate) const fn is_over(&self) -> bool {
        self.finished || self.abandoned
    }

    pub(crate) const fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// Whether messages are updated as a whole, which Slack allows less often.
    pub(crate) const fn is_whole(&self) -> bool {
        self.whole
    }

    /// The next call; `None` if there is nothing to do now.
    pub(crate) fn next(&mut self, desired: &Desired) -> Option<Call> {
        // A question that follows as a message of its own needs no empty message before it.
        let has_message = !self.streams.is_empty() || !self.messages.is_empty();
        self.finished |= desired.ended && desired.is_empty() && !has_message;
        if self.is_over() {
            return None;
        }
        // The agent has started its text again, or tells it in another way after a restart.
        if !self.streams.iter().all(|stream| stream.is_part_of(desired)) {
            self.replace();
        }
        if let Some(ts) = &self.to_stop {
            return Some(Call::Stop { ts: ts.clone(), chunks: Vec::new(), blocks: Vec::new() });
        }
        if self.whole { self.next_whole(desired) } else { self.next_streamed(desired) }
    }

    fn next_streamed(&self, desired: &Desired) -> Option<Call> {
        let last = desired.pages.len().saturating_sub(1);
        let Some(stream) = self.streams.last() else {
            let chunks = self.chunks(desired, 0, 0);
            return (!chunks.is_empty() || desired.ended).then_some(Call::Start { chunks });
        };
        if !stream.open {
            return self.after_closed(desired, stream, last);
        }
        let mut chunks = self.chunks(desired, stream.page, stream.to);
        let ts = stream.ts.clone();
        if stream.page < last {
            chunks.retain(is_text);
            return Some(Call::Stop { ts, chunks, blocks: Vec::new() });
        }
        if desired.ended {
            return Some(Call::Stop { ts, chunks, blocks: desired.footer.clone() });
        }
        (!chunks.is_empty()).then_some(Call::Append { ts, chunks })
    }

    /// Continues in a new message.
    fn after_closed(&self, desired: &Desired, stream: &Streamed, last: usize) -> Option<Call> {
        let (page, from) = after(desired, stream);
        let chunks = self.chunks(desired, page, from);
        if chunks.iter().any(is_text) || (!chunks.is_empty() && !desired.ended) {
            return Some(Call::Start { chunks });
        }
        // Everything is shown; only the blocks at the end are missing.
        let shown = page >= last;
        (desired.ended && shown).then(|| Call::Post { text: "Done".to_owned(), blocks: closing(desired) })
    }

    /// What a stream lacks of a page, of the cards and of the heading.
    fn chunks(&self, desired: &Desired, page: usize, from: usize) -> Vec<Value> {
        let mut chunks = Vec::new();
        if !desired.title.is_empty() && desired.title != self.title {
            chunks.push(json!({"type": "plan_update", "title": desired.title}));
        }
        let changed = desired.cards.iter().map(|card| (card.id(), card.chunk()));
        chunks
            .extend(changed.filter(|(id, chunk)| self.cards.get(*id) != Some(chunk)).map(|(_, chunk)| chunk));
        let missing = desired.pages.get(page).and_then(|text| text.get(from..)).unwrap_or_default();
        if !missing.is_empty() {
            chunks.push(json!({"type": "markdown_text", "text": missing}));
        }
        chunks
    }

    fn next_whole(&self, desired: &Desired) -> Option<Call> {
        let pages = desired.pages.len().max(1);
        for page in 0..pages {
            let blocks = blocks(desired, page, pages);
            let text = excerpt(desired.pages.get(page).map_or("Working…", String::as_str), 150);
            match self.messages.get(page) {
                None => return Some(Call::Post { text, blocks }),
                Some(ts) if self.shown.get(page) != Some(&blocks) => {
                    return Some(Call::Update { ts: ts.clone(), text, blocks });
                }
                Some(_) => {}
            }
        }
        let surplus = self.messages.get(pages..).and_then(|rest| rest.last()).filter(|_| desired.ended)?;
        Some(Call::Delete { ts: surplus.clone() })
    }

    /// Notes that Slack has not done the call that began.
    pub(crate) const fn refused(&mut self) {
        self.begun = false;
    }

    /// Records the result of a call; `Ok` has the time stamp of a new message. `desired` is the one that the call was made
    /// for.
    pub(crate) fn done(&mut self, call: &Call, desired: &Desired, result: Result<Option<String>, Fault>) {
        self.begun = false;
        match result {
            Ok(ts) => {
                self.failures = 0;
                self.confirmed(call, desired, ts.unwrap_or_default());
            }
            Err(fault) => self.failed(call, fault),
        }
        let settled = desired.ended && self.next(desired).is_none();
        self.finished = self.finished || settled;
    }

    fn confirmed(&mut self, call: &Call, desired: &Desired, ts: String) {
        match call {
            Call::Start { chunks } => {
                let (page, _) = self.streams.last().map_or((0, 0), |stream| after(desired, stream));
                let before = self.streams.last().filter(|stream| stream.page == page);
                let (to, checksum) = before.map_or((0, 0), |stream| (stream.to, stream.checksum));
                self.streams.push(Streamed { ts, page, to, checksum, open: true });
                self.sent(chunks);
            }
            Call::Append { chunks, .. } => self.sent(chunks),
            Call::Stop { ts, chunks, .. } => {
                self.to_stop = None;
                if self.whole {
                    return;
                }
                self.sent(chunks);
                self.close(ts);
                let on_last =
                    self.streams.last().is_some_and(|stream| stream.page + 1 >= desired.pages.len());
                self.finished = desired.ended && on_last;
            }
            Call::Post { .. } if !self.whole => self.finished = true,
            Call::Post { blocks, .. } => {
                self.shown.resize(self.messages.len(), Vec::new());
                self.messages.push(ts);
                self.shown.push(blocks.clone());
            }
            Call::Update { ts, blocks, .. } => {
                self.shown.resize(self.messages.len(), Vec::new());
                let place = self.messages.iter().position(|known| known == ts);
                if let Some(shown) = place.and_then(|at| self.shown.get_mut(at)) {
                    shown.clone_from(blocks);
                }
            }
            Call::Delete { ts } => self.messages.retain(|known| known != ts),
        }
    }

    /// Records what the open stream shows now.
    fn sent(&mut self, chunks: &[Value]) {
        for chunk in chunks {
            match chunk["type"].as_str() {
                Some("markdown_text") => {
                    let text = chunk["text"].as_str().unwrap_or_default();
                    if let Some(stream) = self.streams.last_mut() {
                        stream.to += text.len();
                        stream.checksum = checksum(stream.checksum, text);
                    }
                }
                Some("plan_update") => {
                    chunk["title"].as_str().unwrap_or_default().clone_into(&mut self.title);
                }
                _ => {
                    let id = chunk["id"].as_str().unwrap_or_default().to_owned();
                    self.cards.insert(id, chunk.clone());
                }
            }
        }
    }

    /// A stream has ended. Its finished cards are not shown again; others continue in the next message.
    fn close(&mut self, ts: &str) {
        for stream in self.streams.iter_mut().filter(|stream| stream.ts == ts) {
            stream.open = false;
        }
        self.cards.retain(|_, chunk| matches!(chunk["status"].as_str(), Some("complete" | "error")));
        self.title.clear();
    }

    fn failed(&mut self, call: &Call, fault: Fault) {
        self.failures += 1;
        if self.failures > MOST_FAILURES {
            self.abandoned = true;
            return;
        }
        match (call, fault) {
            (Call::Stop { .. }, Fault::Ambiguous) if self.to_stop.is_some() => {}
            // The message is updated next; that tells whether it still streams.
            (Call::Stop { .. }, _) if self.to_stop.is_some() => self.to_stop = None,
            (Call::Update { ts, .. }, Fault::Rejected) => self.to_stop = Some(ts.clone()),
            (Call::Delete { ts }, _) => self.messages.retain(|known| known != ts),
            (Call::Start { .. } | Call::Post { .. } | Call::Update { .. }, Fault::Gone) => {
                self.abandoned = true;
            }
            (Call::Append { ts, .. } | Call::Stop { ts, .. }, Fault::StreamEnded | Fault::Gone) => {
                let ts = ts.clone();
                self.close(&ts);
            }
            (Call::Start { .. }, _) if self.streams.is_empty() => self.whole = true,
            (Call::Start { .. } | Call::Append { .. } | Call::Stop { .. }, _) => self.replace(),
            (Call::Post { .. } | Call::Update { .. }, _) => {}
        }
    }

    /// From now on, replaces messages as a whole.
    fn replace(&mut self) {
        self.to_stop = self.streams.iter().rfind(|stream| stream.open).map(|stream| stream.ts.clone());
        self.messages.extend(self.streams.drain(..).map(|stream| stream.ts));
        self.shown.clear();
        self.whole = true;
    }
}

/// The page after a closed stream, and the part of it that is shown already.
fn after(desired: &Desired, stream: &Streamed) -> (usize, usize) {
    let length = desired.pages.get(stream.page).map_or(0, String::len);
    let has_next = stream.page + 1 < desired.pages.len();
    if stream.to >= length && has_next { (stream.page + 1, 0) } else { (stream.page, stream.to) }
}

fn is_text(chunk: &Value) -> bool {
    chunk["type"] == "markdown_text"
}

/// The blocks at the end, at least one.
fn closing(desired: &Desired) -> Vec<Value> {
    if desired.footer.is_empty() {
        return vec![json!({"type": "context", "elements": [{"type": "mrkdwn", "text": "Done"}]})];
    }
    desired.footer.clone()
}

/// A message as a whole: the plan before the first page, the blocks at the end after the last one.
fn blocks(desired: &Desired, page: usize, pages: usize) -> Vec<Value> {
    let mut blocks = Vec::new();
    if page == 0 && !desired.cards.is_empty() {
        let lines: Vec<String> = desired.cards.iter().map(super::transcript::Card::line).collect();
        let text = escaped(&lines.join("\n"), SECTION);
        blocks.push(json!({"type": "section", "text": {"type": "mrkdwn", "text": text}}));
    }
    match desired.pages.get(page) {
        Some(text) => blocks.push(json!({"type": "markdown", "text": text})),
        None if !desired.ended && blocks.is_empty() => {
            blocks.push(json!({"type": "context", "elements": [{"type": "mrkdwn", "text": "Working…"}]}));
        }
        None => {}
    }
    if desired.ended && page + 1 == pages {
        blocks.extend(desired.footer.iter().cloned());
    }
    blocks
}

/// Text for Slack's own markup, which gives `&`, `<` and `>` a meaning; at most `most` characters.
pub(crate) fn escaped(text: &str, most: usize) -> String {
    let mut result = String::new();
    for c in text.chars() {
        let piece = match c {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            other => other.to_string(),
        };
        if result.len() + piece.len() >= most {
            result.push('…');
            break;
        }
        result.push_str(&piece);
    }
    result
}

#[cfg(test)]
#[path = "delivery_tests.rs"]
mod tests;
