//! Live text: one artifact for each request, and the texts that every client must show.

use std::sync::Arc;

use caipe_a2a::model::{Event, Metadata, Part};
use caipe_engine::TextRole;
use serde_json::Value;

use super::event_builders::{Chunk, Wire};
use super::plan::PlanView;
use super::text_artifact::TextArtifact;

/// The name of the artifact on the wire.
const NAME: &str = "streaming_result";

/// Distinguishes the ids of this artifact from those of the texts of agents.
const KIND: &str = "text";

/// The kind of a text that a person must read in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FullText {
    Answer,
    /// The question that the run waits for; the client gets a form too.
    Question,
    /// Why there is no answer; the status contains it too.
    Failure,
}

impl FullText {
    /// The member of the metadata that marks a text for clients that draw forms and statuses: they show it already.
    const fn flag(self) -> Option<&'static str> {
        match self {
            Self::Answer => None,
            Self::Question => Some("is_question"),
            Self::Failure => Some("is_failure"),
        }
    }
}

/// The streaming artifact, and the part of it that two kinds of clients have shown.
///
/// A client of the SDKs shows the current text of the artifact. Upstream's Slack bot ignores narration and, under a plan,
/// the text before the plan's last step. It cannot remove text that it has shown.
/// Many clients print neither the status text nor `final_result`, so this artifact has every text that a person must read.
#[derive(Debug, Clone, Default)]
pub(super) struct TextStream {
    artifact: TextArtifact,
    /// The text since the last event of another kind, or since the answer began. An answer is never interrupted.
    passage: Passage,
    /// Whether the passage is marked as the answer.
    is_answer: bool,
    /// The part of `passage` that is shown in Slack.
    in_slack: Passage,
    /// Whether any text was shown in Slack. Without a plan, it then shows no result at the end.
    open_in_slack: bool,
    /// Whether Slack has seen text in the plan's last step: it shows all text from then on, and no result at the end.
    latched: bool,
}

impl TextStream {
    /// Sends a piece of text.
    pub(super) fn chunk(&mut self, wire: &Wire, plan: &PlanView, text: &str, role: TextRole) -> Event {
        self.note(plan, text, role);
        self.piece(wire, text, metadata(plan, role))
    }

    /// Notes that an event other than text was sent.
    pub(super) fn interrupted(&mut self) {
        (self.passage, self.in_slack, self.is_answer) = (Passage::default(), Passage::default(), false);
    }

    /// Notes that a model turn begins.
    pub(super) const fn begin_turn(&mut self, wire: &Wire) {
        self.artifact.begin_turn(wire);
    }

    /// Starts the turn again: the artifact loses the text of the turn.
    pub(super) fn restart(&mut self, wire: &Wire, plan: &PlanView) -> Event {
        self.interrupted();
        let (id, remaining) = self.artifact.reset(wire, KIND);
        // Upstream's Slack bot ignores narration; it cannot remove text, and must not show the rest twice.
        let metadata = metadata(plan, TextRole::Narration);
        let (description, part) = ("Streaming result", Part::text(remaining));
        wire.artifact(Chunk { id, name: NAME, description, part, metadata, append: false, last: false })
    }

    /// Sends a text that a person must read in full, unless every client has shown it.
    ///
    /// The text is appended to the artifact. If only Slack lacks it, it replaces the text of the artifact, so that a client
    /// of the SDKs does not show it twice.
    pub(super) fn full_text(
        &mut self,
        wire: &Wire,
        plan: &PlanView,
        text: &str,
        kind: FullText,
    ) -> Vec<Event> {
        let known = self.passage.ends_with(text);
        if text.trim().is_empty() || (known && self.is_shown_in_slack(plan, text)) {
            return Vec::new();
        }
        let begun = self.artifact.has_begun();
        let mut pieces = pieces(text);
        if let Some(first) = pieces.first_mut().filter(|_| begun && !known) {
            first.insert_str(0, "\n\n");
        }
        if known {
            self.interrupted();
        }
        let description = if begun { "Streaming result" } else { "Streaming final answer chunk" };
        let mut events = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            self.note(plan, piece, TextRole::Answer);
            let mut metadata = metadata(plan, TextRole::Answer);
            metadata.extend(wire.trace());
            metadata.extend(kind.flag().map(|flag| (flag.to_owned(), Value::Bool(true))));
            let append = if at == 0 { begun && !known } else { true };
            events.push(self.send(wire, description, piece, metadata, append));
        }
        events
    }

    fn piece(&mut self, wire: &Wire, text: &str, metadata: Metadata) -> Event {
        let append = self.artifact.has_begun();
        self.send(wire, "Streaming result", text, metadata, append)
    }

    fn send(
        &mut self,
        wire: &Wire,
        description: &str,
        text: &str,
        metadata: Metadata,
        append: bool,
    ) -> Event {
        let id = self.artifact.put(wire, KIND, text, append);
        let part = Part::text(text);
        wire.artifact(Chunk { id, name: NAME, description, part, metadata, append, last: false })
    }

    fn note(&mut self, plan: &PlanView, text: &str, role: TextRole) {
        if role == TextRole::Answer && !std::mem::replace(&mut self.is_answer, true) {
            self.interrupted();
            self.is_answer = true;
        }
        self.passage.push(text);
        if role == TextRole::Narration {
            return;
        }
        self.latched |= plan.in_last_step();
        if self.latched || !plan.has_step() {
            self.open_in_slack = true;
            self.in_slack.push(text);
        }
    }

    /// Whether Slack shows this text, either as it streams or as the result at the end.
    fn is_shown_in_slack(&self, plan: &PlanView, text: &str) -> bool {
        let shows_result = !self.latched && (plan.is_shown() || !self.open_in_slack);
        shows_result || self.in_slack.ends_with(text)
    }
}

/// A text that grows piece by piece, in chunks of falling size: a binding is copied with each commit, and a copy of this
/// costs a few pointers however long the text is.
#[derive(Debug, Clone, Default)]
struct Passage(Vec<Arc<str>>);

impl Passage {
    fn push(&mut self, text: &str) {
        let mut chunk = text.to_owned();
        while let Some(last) = self.0.pop_if(|last| last.len() <= chunk.len()) {
            chunk.insert_str(0, &last);
        }
        self.0.push(chunk.into());
    }

    /// Whether it ends in this text; white space makes no difference.
    fn ends_with(&self, text: &str) -> bool {
        let passage = self.0.concat();
        let mut words = passage.split_whitespace().rev();
        text.split_whitespace().rev().all(|word| words.next() == Some(word))
    }
}

fn metadata(plan: &PlanView, role: TextRole) -> Metadata {
    let mut metadata = Metadata::new();
    if let Some(step) = plan.current() {
        metadata.insert("plan_step_id".to_owned(), Value::from(step.step_id.as_str()));
    }
    match role {
        TextRole::Answer => drop(metadata.insert("is_final_answer".to_owned(), Value::Bool(true))),
        TextRole::Narration => drop(metadata.insert("is_narration".to_owned(), Value::Bool(true))),
        TextRole::Plain => {}
    }
    metadata
}

/// The text in pieces of about 200 characters; each piece but the last ends in one space.
pub(super) fn pieces(text: &str) -> Vec<String> {
    const ABOUT: usize = 200;
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for word in text.split_inclusive(' ') {
        if !piece.is_empty() && piece.len() + word.len() > ABOUT {
            pieces.push(std::mem::take(&mut piece));
        }
        piece.push_str(word);
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::Passage;

    #[test]
    fn a_passage_is_known_again_however_it_was_cut_and_is_cheap_to_copy() {
        let streamed = |pieces: &[&str]| {
            let mut passage = Passage::default();
            for piece in pieces {
                passage.push(piece);
            }
            passage
        };
        for pieces in [&["I look. It is", " fi", "ne – Grüße"][..], &["It  is\tfine –\n", "Grüße "]] {
            assert!(streamed(pieces).ends_with("It is fine – Grüße"), "{pieces:?}");
        }
        for other in ["It isfine – Grüße", "look. It was fine – Grüße", "It is fine –"] {
            assert!(!streamed(&["I look. It is fine – Grüße"]).ends_with(other), "{other}");
        }
        let long = streamed(&vec!["word "; 100_000]);
        assert!(long.0.len() < 64, "{} chunks", long.0.len());
    }
}
