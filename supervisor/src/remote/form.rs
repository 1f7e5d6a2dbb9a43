//! The questions of an agent as forms, and the answers to them. Pure.

use caipe_a2a::model::{Artifact, Part};
use caipe_engine::{ALWAYS, ANSWER_FIELD, ASK_TOOL, Answered, Decision, FieldType, Form, FormField};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Most fields that a form may have.
const MOST_FIELDS: usize = 200;

/// Most bytes of the id of an interaction.
const MOST_ID_BYTES: usize = 4096;

/// The form on the wire. Upstream omits many members or sends `null`.
#[derive(Deserialize)]
struct Wire {
    input_title: Option<String>,
    input_description: Option<String>,
    input_fields: Option<Vec<Field>>,
    response: Option<String>,
    action_name: Option<String>,
    arguments: Option<Value>,
    interaction_id: Option<String>,
    digest: Option<String>,
    always: Option<bool>,
}

#[derive(Deserialize)]
struct Field {
    #[serde(rename = "field_name")]
    name: Option<String>,
    #[serde(rename = "field_description")]
    description: Option<String>,
    #[serde(rename = "field_values")]
    values: Option<Vec<Value>>,
    #[serde(rename = "field_label")]
    label: Option<String>,
    #[serde(rename = "field_type")]
    kind: Option<Value>,
    placeholder: Option<String>,
    default_value: Option<Value>,
    required: Option<bool>,
    min: Option<Value>,
    max: Option<Value>,
    value: Option<Value>,
    error: Option<String>,
    interaction_id: Option<String>,
    digest: Option<String>,
}

/// The id of an interaction and its digest, if the agent gives both.
fn identity(id: Option<String>, digest: Option<String>) -> (String, String) {
    let given = |text: &String| !text.is_empty() && text.len() <= MOST_ID_BYTES;
    id.filter(given).zip(digest.filter(given)).unwrap_or_default()
}

/// The form in an artifact, if it contains one.
pub(super) fn of(artifact: &Artifact) -> Option<Form> {
    let is_named = artifact.name.as_deref() == Some("UserInputMetaData");
    let data = artifact.parts.iter().find_map(Part::as_data)?;
    let is_form = is_named || data.get("user_input").and_then(Value::as_bool) == Some(true);
    let wire: Wire = is_form.then(|| Deserialize::deserialize(data).ok())??;
    let description =
        [wire.response, wire.input_description].into_iter().flatten().find(|text| !text.is_empty());
    let (id, digest) = identity(wire.interaction_id, wire.digest);
    Some(Form {
        id,
        digest,
        action: wire.action_name.filter(|name| !name.is_empty()).unwrap_or_else(|| ASK_TOOL.to_owned()),
        arguments: wire.arguments.unwrap_or_default(),
        always: wire.always == Some(true),
        title: wire.input_title.unwrap_or_default(),
        description: description.unwrap_or_default(),
        fields: wire.input_fields.into_iter().flatten().take(MOST_FIELDS).filter_map(field).collect(),
        ..Form::default()
    })
}

fn field(field: Field) -> Option<FormField> {
    let (interaction_id, digest) = identity(field.interaction_id, field.digest);
    let values: Option<Vec<String>> = field.values.map(|values| values.iter().map(in_text).collect());
    let named = field.kind.as_ref().and_then(Value::as_str).and_then(FieldType::named);
    // An unknown type takes any text, or one of its choices. Upstream's forms have no types.
    let other = if values.as_ref().is_some_and(|values| !values.is_empty()) {
        FieldType::Select
    } else {
        FieldType::TextArea
    };
    let number = |bound: Option<Value>| bound.and_then(|bound| bound.as_number().cloned());
    Some(FormField {
        interaction_id,
        digest,
        field_name: field.name.filter(|name| !name.is_empty())?,
        field_label: field.label.unwrap_or_default(),
        field_description: field.description.unwrap_or_default(),
        field_type: named.unwrap_or(other),
        field_values: values,
        placeholder: field.placeholder.unwrap_or_default(),
        default_value: field.default_value,
        required: field.required.unwrap_or_default(),
        min: number(field.min),
        max: number(field.max),
        value: field.value,
        error: field.error,
    })
}

pub(crate) fn in_words(agent: &str, question: Option<&str>) -> Form {
    let description =
        question.map_or_else(|| format!("The agent {agent} needs more information."), str::to_owned);
    Form {
        action: ASK_TOOL.to_owned(),
        title: format!("A question of {agent}"),
        description,
        fields: vec![FormField::any_text()],
        ..Form::default()
    }
}

/// The parts of an answer: text, and for a form also the decisions as data, one for each call of the form.
pub(super) fn answer(answered: &Answered) -> Vec<Part> {
    let Answered { form, decisions, .. } = answered;
    if let ([field], [Decision::Submit { values }]) = (form.fields.as_slice(), decisions.as_slice())
        && field.field_name == ANSWER_FIELD
        && !form.is_approval()
    {
        let answer = values.get(ANSWER_FIELD).map_or_else(|| lines(values), in_text);
        return vec![Part::text(answer)];
    }
    // Sends every decision, even surplus ones: the agent then repeats its question. They are about no call of the form.
    let unbound = || decisions.iter().map(|decision| (nameless(form), decision.clone())).collect();
    let each = answered.each().unwrap_or_else(unbound);
    let (words, data): (Vec<String>, Vec<Value>) =
        each.iter().map(|(call, decision)| decided(call, decision)).unzip();
    let words = if words.windows(2).all(|pair| pair[0] == pair[1]) {
        words.into_iter().next().unwrap_or_default()
    } else {
        words.join("\n")
    };
    let words = if words.trim().is_empty() { "no".to_owned() } else { words };
    vec![Part::text(words), Part::data(json!({"resume": {"decisions": data}}))]
}

/// The form without the id of its interaction.
fn nameless(form: &Form) -> Form {
    Form { id: String::new(), digest: String::new(), ..form.clone() }
}

/// One decision as text and as data.
fn decided(call: &Form, decision: &Decision) -> (String, Value) {
    let action = &call.action;
    let (words, mut data) = match decision {
        Decision::Approve => ("yes".to_owned(), json!({"type": "approve", "action_name": action})),
        Decision::Always => {
            ("yes".to_owned(), json!({"type": "approve", "action_name": action, ALWAYS: true}))
        }
        // Upstream's agents know it by this name.
        Decision::Respond { message } => {
            (message.clone(), json!({"type": "response", "action_name": action, "message": message}))
        }
        Decision::Submit { values } | Decision::Edit { arguments: values } => {
            (lines(values), edit(call, values))
        }
        Decision::Reject { message } => {
            (message.clone(), json!({"type": "reject", "action_name": action, "message": message}))
        }
    };
    if !call.id.is_empty() {
        (data["interaction_id"], data["digest"]) = (call.id.clone().into(), call.digest.clone().into());
    }
    (words, data)
}

/// An edit: the values of a form are `user_inputs`, those of a tool call are its arguments.
fn edit(form: &Form, values: &Map<String, Value>) -> Value {
    let args =
        if form.action == ASK_TOOL { json!({"user_inputs": values}) } else { Value::Object(values.clone()) };
    json!({
        "type": "edit",
        "action_name": form.action,
        "edited_action": {"name": form.action, "args": args},
    })
}

fn lines(values: &Map<String, Value>) -> String {
    let text = |value: &Value| match value {
        Value::Array(values) => values.iter().map(in_text).collect::<Vec<_>>().join(", "),
        value => in_text(value),
    };
    values.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect::<Vec<_>>().join("\n")
}

fn in_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
