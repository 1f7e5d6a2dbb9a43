//! How a run ends on the wire. Everything that a person must read is also in the text of the stream.

use caipe_a2a::model::{Event, Metadata, Part, TaskState};
use caipe_engine::{ANSWER_FIELD, AnswerOrigin, FieldType, Form, FormField, Outcome};
use serde_json::{Value, json};

use super::decision;
use super::event_builders::{Chunk, Wire};
use super::plan::PlanView;
use super::stream::{FullText, TextStream};

/// The text of a form without a description.
pub(super) const DEFAULT_QUESTION: &str = "Please provide the required information.";

/// Adds a question to those that the final status lists.
pub(super) fn add_question(all: &mut Option<String>, question: String) {
    *all = Some(match all.take() {
        Some(before) => format!("{before}\n\n{question}"),
        None => question,
    });
}

/// The events that end a run; exactly one of them, the last, is a final status.
pub(super) fn finished(
    wire: &mut Wire,
    stream: &mut TextStream,
    plan: &PlanView,
    outcome: &Outcome,
    question: Option<String>,
) -> Vec<Event> {
    match outcome {
        Outcome::Completed { text, origin } => completed(wire, stream, plan, text, *origin),
        // No result: a client offers to try again if there is none.
        Outcome::Failed { reason } => vec![wire.status(TaskState::Failed, Some(reason))],
        Outcome::Canceled => vec![wire.status(TaskState::Canceled, None)],
        Outcome::InputRequired => {
            let question = question.unwrap_or_else(|| DEFAULT_QUESTION.to_owned());
            vec![wire.status(TaskState::InputRequired, Some(&question))]
        }
    }
}

/// The text of a failure in the stream. Upstream's Slack bot sends whole lines only, and drops the rest when it fails.
pub(super) fn failure(reason: &str) -> String {
    format!("{reason}\n")
}

fn completed(
    wire: &mut Wire,
    stream: &mut TextStream,
    plan: &PlanView,
    text: &str,
    origin: AnswerOrigin,
) -> Vec<Event> {
    let mut events = Vec::new();
    if !text.is_empty() {
        events.extend(stream.full_text(wire, plan, text, FullText::Answer));
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
        AnswerOrigin::Recovered => ("final_result", "Recovered result"),
        AnswerOrigin::Partial => ("partial_result", "Partial result (stream ended)"),
    }
}

/// The events of a form: its text, also in the stream, then its fields. `asked` has the texts of the forms before.
/// Returns the text for the final status too.
pub(super) fn question(
    wire: &mut Wire,
    stream: &mut TextStream,
    plan: &PlanView,
    asked: &mut String,
    form: &Form,
) -> (String, Vec<Event>) {
    let question = words(form);
    let spoken = spelled_out(form);
    // Upstream's Slack bot shows the text of the last artifact only: that must be all that is asked.
    asked.push_str(if asked.is_empty() { "" } else { "\n\n" });
    asked.push_str(&spoken);
    let mut events = Vec::new();
    if !form.description.is_empty() {
        events.push(wire.status(TaskState::Working, Some(&question)));
    }
    events.extend(stream.full_text(wire, plan, &spoken, FullText::Question));
    stream.interrupted();
    events.push(self::form(wire, &with_last_values(form), Some(asked.clone()), Metadata::new()));
    // A client that shows the status only must show the arguments, and how to answer.
    (if form.is_approval() { spoken } else { question }, events)
}

/// The form with the values of the last answer as defaults, which is all that upstream's web UI fills in.
fn with_last_values(form: &Form) -> Form {
    let mut form = form.clone();
    for field in &mut form.fields {
        field.default_value = field.value.clone().or(field.default_value.take());
    }
    form
}

/// The text of a form for a person who sees no form: the question, its subject, and how to answer in text.
pub(super) fn spelled_out(form: &Form) -> String {
    let mut lines = vec![words(form)];
    if form.is_approval() {
        let arguments = [&form.arguments].into_iter().filter(|arguments| !arguments.is_null());
        // The description of a form about several calls contains their arguments.
        lines.extend(
            arguments
                .filter(|_| form.calls().len() == 1)
                .map(|arguments| format!("Arguments: `{arguments}`")),
        );
        let calls = form.calls();
        let calls: Vec<&Form> = calls.iter().filter(|call| call.is_approval()).collect();
        lines.push(match calls.as_slice() {
            [only] => format!("Answer with {}.", only.text_answers()),
            several => format!("Answer with a line for each call: {}.", decision::listed_answers(several)),
        });
    } else if takes_any_text(form) {
        lines.push(format!("Answer with a line `{ANSWER_FIELD}: …`."));
    } else if !form.fields.is_empty() {
        lines.push(form.fields.iter().map(field_line).collect::<Vec<_>>().join("\n"));
        lines.push("Answer with a line `field: value` for each field.".to_owned());
    }
    lines.join("\n\n")
}

/// Whether any text answers the form.
pub(crate) fn takes_any_text(form: &Form) -> bool {
    matches!(form.fields.as_slice(), [field] if field.field_name == ANSWER_FIELD)
}

/// ``- `count` (required): Replicas, a number from 1 to 5, default `3` ``.
fn field_line(field: &FormField) -> String {
    let required = if field.required { " (required)" } else { "" };
    let about = [&field.field_label, &field.field_description];
    let about: Vec<&str> = about.into_iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    let about = if about.is_empty() { String::new() } else { format!(": {}", about.join(": ")) };
    let expects = match field.field_type {
        FieldType::Text | FieldType::TextArea if field.min.is_none() && field.max.is_none() => String::new(),
        _ => format!(", {}", field.expects()),
    };
    let default = field.value.as_ref().or(field.default_value.as_ref());
    let default = default.map(|value| format!(", default `{}`", field_text(value))).unwrap_or_default();
    format!("- `{}`{required}{about}{expects}{default}", field.field_name)
}

/// A value as a person writes it.
fn field_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(values) => values.iter().map(field_text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// The question of a form.
fn words(form: &Form) -> String {
    if form.description.is_empty() { DEFAULT_QUESTION } else { &form.description }.to_owned()
}

/// A form as data, and as text for clients that draw no forms.
pub(super) fn form(wire: &mut Wire, form: &Form, spoken: Option<String>, metadata: Metadata) -> Event {
    let id = wire.id();
    let mut event = wire.artifact(Chunk {
        id,
        name: "UserInputMetaData",
        description: "Structured user input form definition",
        part: Part::data(form_data(form)),
        metadata,
        append: false,
        last: false,
    });
    if let Event::ArtifactUpdate(update) = &mut event {
        update.artifact.parts.extend(spoken.map(Part::text));
    }
    event
}

fn form_data(form: &Form) -> Value {
    // Without a title, upstream's web UI uses its own heading.
    let title = Some(&form.title).filter(|title| !title.is_empty());
    let mut data = json!({
        "user_input": true,
        "input_description": form.description,
        "input_fields": form.fields,
        "response": form.description,
        "action_name": form.action,
        "arguments": form.arguments,
    });
    if let Some(title) = title {
        data["input_title"] = json!(title);
    }
    if !form.id.is_empty() {
        data["interaction_id"] = json!(form.id);
        data["digest"] = json!(form.digest);
    }
    if form.always {
        data["always"] = json!(true);
    }
    data
}
