//! Live text: one artifact per request, and which text is an echo that nobody needs.

use caipe_a2a::model::{Event, Metadata, Part};
use caipe_engine::TextRole;
use serde_json::Value;

use super::parts::{Chunk, Wire};
use super::plan::PlanView;

/// The streaming artifact and the echo rule (data-model seed, `STREAMING_RESULT` event processing).
#[derive(Debug, Clone, Default)]
pub(super) struct TextStream {
    /// Its id, once something was shown.
    artifact: Option<String>,
    /// The answer has begun: everything is shown from now on.
    answering: bool,
    agents_completed: u32,
    last_was_rag: bool,
}

impl TextStream {
    /// A piece of text, or nothing if it only repeats what an agent said.
    pub(super) fn chunk(
        &mut self,
        wire: &mut Wire,
        plan: &PlanView,
        text: &str,
        role: TextRole,
    ) -> Option<Event> {
        if !self.passes(plan, role) {
            return None;
        }
        let append = self.artifact.is_some();
        let id = self.artifact.get_or_insert_with(|| wire.id()).clone();
        Some(wire.artifact(Chunk {
            id,
            name: "streaming_result",
            description: "Streaming result",
            part: Part::text(text),
            metadata: metadata(plan, role),
            append,
            last: false,
        }))
    }

    /// The seed's flow chart, from top to bottom.
    fn passes(&mut self, plan: &PlanView, role: TextRole) -> bool {
        if self.answering || role == TextRole::Answer {
            self.answering = true;
            return true;
        }
        if plan.current().is_some() {
            self.answering = plan.in_last_step() && role != TextRole::Narration;
            return true;
        }
        self.agents_completed != 1 || self.last_was_rag
    }

    /// The turn starts again: what follows takes the place of what was shown.
    pub(super) fn restart(&mut self) {
        self.artifact = None;
    }

    /// A tool of the supervisor's own ended.
    pub(super) fn tool_ended(&mut self, rag: bool) {
        self.last_was_rag = rag;
    }

    /// An agent gave its answer.
    pub(super) fn agent_completed(&mut self) {
        self.agents_completed += 1;
        self.last_was_rag = false;
    }

    /// The answer in pieces, for a client that has seen none of it (upstream's "deterministic chunker").
    pub(super) fn catch_up(&mut self, wire: &mut Wire, text: &str) -> Vec<Event> {
        if self.artifact.is_some() {
            return Vec::new();
        }
        let id = wire.id();
        let mut metadata = wire.trace();
        metadata.insert("is_final_answer".to_owned(), Value::Bool(true));
        let piece = |(at, text): (usize, String)| {
            wire.artifact(Chunk {
                id: id.clone(),
                name: "streaming_result",
                description: "Streaming final answer chunk",
                part: Part::text(text),
                metadata: metadata.clone(),
                append: at > 0,
                last: false,
            })
        };
        pieces(text).into_iter().enumerate().map(piece).collect()
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

/// Words joined up to about 200 characters; all but the last piece end in one space.
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
