//! Live text: one artifact for each request, and the texts that every client must show.

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
    passage: String,
    /// Whether the passage is marked as the answer.
    is_answer: bool,
    /// The part of `passage` that is shown in Slack.
    in_slack: String,
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

    /// Notes a piece of text that differs from the last one in its text only.
    pub(super) fn continued(&mut self, plan: &PlanView, text: &str, role: TextRole) {
        self.note(plan, text, role);
        self.artifact.push(text);
    }

    /// Notes that an event other than text was sent.
    pub(super) fn interrupted(&mut self) {
        self.passage.clear();
        self.in_slack.clear();
        self.is_answer = false;
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
        let known = ends_in(&self.passage, text);
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
        self.passage.push_str(text);
        if role == TextRole::Narration {
            return;
        }
        self.latched |= plan.in_last_step();
        if self.latched || !plan.has_step() {
            self.open_in_slack = true;
            self.in_slack.push_str(text);
        }
    }

    /// Whether Slack shows this text, either as it streams or as the result at the end.
    fn is_shown_in_slack(&self, plan: &PlanView, text: &str) -> bool {
        let shows_result = !self.latched && (plan.is_shown() || !self.open_in_slack);
        shows_result || ends_in(&self.in_slack, text)
    }
}

/// Whether a text ends in another one; white space makes no difference.
fn ends_in(passage: &str, text: &str) -> bool {
    let mut words = passage.split_whitespace().rev();
    text.split_whitespace().rev().all(|word| words.next() == Some(word))
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
    use super::ends_in;

    #[test]
    fn a_passage_is_known_again_whatever_its_white_space_is() {
        for passage in ["I look. It is fine – Grüße", "It  is\tfine –\nGrüße "] {
            assert!(ends_in(passage, "It is fine – Grüße"), "{passage:?}");
        }
        for other in ["It isfine – Grüße", "look. It was fine – Grüße", "It is fine –"] {
            assert!(!ends_in("I look. It is fine – Grüße", other), "{other}");
        }
    }
}
