//! How a run ends on the wire (upstream contract 3.6, 3.7).

use caipe_a2a::model::{Event, Metadata, Part, TaskState};
use caipe_engine::{AnswerOrigin, Form, Outcome};
use serde_json::{Value, json};

use super::parts::{Chunk, Wire};
use super::stream::TextStream;

/// What a form asks where the model gave no words of its own.
pub(super) const DEFAULT_QUESTION: &str = "Please provide the required information.";

/// The events that end a run; exactly one of them, the last, is a final status.
pub(super) fn finished(
    wire: &mut Wire,
    stream: &mut TextStream,
    outcome: &Outcome,
    question: Option<String>,
) -> Vec<Event> {
    match outcome {
        Outcome::Completed { text, origin } => completed(wire, stream, text, *origin),
        Outcome::Failed { reason } => vec![wire.status(TaskState::Failed, Some(reason))],
        Outcome::Canceled => vec![wire.status(TaskState::Canceled, None)],
        Outcome::InputRequired => {
            let question = question.unwrap_or_else(|| DEFAULT_QUESTION.to_owned());
            vec![wire.status(TaskState::InputRequired, Some(&question))]
        }
    }
}

fn completed(wire: &mut Wire, stream: &mut TextStream, text: &str, origin: AnswerOrigin) -> Vec<Event> {
    let mut events = Vec::new();
    if !text.is_empty() {
        if matches!(origin, AnswerOrigin::Structured | AnswerOrigin::Marked) {
            events.extend(stream.catch_up(wire, text));
        }
        let (name, description) = result_name(origin);
        let trace = wire.trace();
        events.push(wire.result(name, description, text, trace));
    }
    events.push(wire.status(TaskState::Completed, None));
    events
}

fn result_name(origin: AnswerOrigin) -> (&'static str, &'static str) {
    match origin {
        AnswerOrigin::Structured | AnswerOrigin::Marked => {
            ("final_result", "Complete result from Platform Engineer")
        }
        AnswerOrigin::Model => ("final_result", "Final result"),
        AnswerOrigin::Synthesis => ("final_result", "Synthesized result from multiple agents"),
        AnswerOrigin::Partial => ("partial_result", "Partial result (stream ended)"),
    }
}

/// A form: what is asked in words, then the fields. Returns the words for the final status too.
pub(super) fn question(wire: &mut Wire, form: &Form) -> (String, Vec<Event>) {
    let question = words(form);
    let mut events = Vec::new();
    if !form.description.is_empty() {
        events.push(wire.status(TaskState::Working, Some(&question)));
    }
    events.push(self::form(wire, form, Metadata::new()));
    (question, events)
}

/// What a form asks, in words.
pub(super) fn words(form: &Form) -> String {
    if form.description.is_empty() { DEFAULT_QUESTION } else { &form.description }.to_owned()
}

/// A form as data.
pub(super) fn form(wire: &mut Wire, form: &Form, metadata: Metadata) -> Event {
    let id = wire.id();
    wire.artifact(Chunk {
        id,
        name: "UserInputMetaData",
        description: "Structured user input form definition",
        part: Part::data(form_data(form)),
        metadata,
        append: false,
        last: false,
    })
}

fn form_data(form: &Form) -> Value {
    json!({
        "user_input": true,
        "input_title": form.title,
        "input_description": form.description,
        "input_fields": form.fields,
        "response": form.description,
        "action_name": form.action,
        "arguments": form.arguments,
    })
}
