//! `request_user_input` and `CAIPEAgentResponse`: asking the user with a form.

use serde_json::{Map, Value};

use crate::form::{ASK_TOOL, Form, FormField, REQUEST_INPUT_TOOL, plain};

use super::form_fields;

/// Most characters of one answer.
const ANSWER_CHARS: usize = 20_000;

/// The limits of a form's texts.
const MOST_TITLE_CHARS: usize = 200;
const MOST_DESCRIPTION_CHARS: usize = 10_000;

/// The form in the arguments of a call of the tool `name`. The error is for the model.
pub(crate) fn form(name: &str, arguments: &Map<String, Value>) -> Result<Form, String> {
    let is_request = name == REQUEST_INPUT_TOOL;
    let (title, description, list, listed) = if is_request {
        ("title", "description", "fields", arguments.get("fields"))
    } else {
        let listed = arguments.get("metadata").and_then(|metadata| metadata.get("input_fields"));
        ("input_title", "response", "metadata.input_fields", listed)
    };
    let fields = form_fields::fields(list, listed, is_request)?;
    if fields.is_empty() {
        return Err(format!(
            "ERROR: No input_fields provided. Call the tool again with {list}, a list of objects with field_name and \
             field_description."
        ));
    }
    let text = |key: &str, most: usize| {
        let text = arguments.get(key).and_then(Value::as_str).unwrap_or_default().trim();
        let is_short = text.chars().count() <= most;
        is_short
            .then(|| text.to_owned())
            .ok_or_else(|| format!("ERROR: {key}: give at most {most} characters."))
    };
    Ok(Form {
        action: ASK_TOOL.to_owned(),
        title: text(title, MOST_TITLE_CHARS)?,
        description: text(description, MOST_DESCRIPTION_CHARS)?,
        fields,
        ..Form::default()
    })
}

/// The result of a form that the user answered, in the form that prompts describe to models.
///
/// A field without an answer has its previous value, else its default.
pub(crate) fn submitted(form: &Form, answers: &Map<String, Value>) -> Result<String, String> {
    let value =
        |field: &FormField| answer(answers.get(&field.field_name)).or_else(|| answer(field.value.as_ref()));
    let value = |field: &FormField| value(field).or_else(|| answer(field.default_value.as_ref()));
    let missing: Vec<&str> = form
        .fields
        .iter()
        .filter(|field| field.required && value(field).is_none())
        .map(|field| field.field_name.as_str())
        .collect();
    let extra = answers.iter().filter(|(name, _)| form.fields.iter().all(|field| field.field_name != **name));
    let (required, optional): (Vec<_>, Vec<_>) = form.fields.iter().partition(|field| field.required);
    let lines: Vec<String> = required
        .into_iter()
        .chain(optional)
        .filter_map(|field| value(field).map(|value| line(&field.field_name, &value)))
        .chain(extra.filter_map(|(name, value)| answer(Some(value)).map(|value| line(name, &value))))
        .collect();
    if lines.is_empty() {
        return Err("Waiting for user input".to_owned());
    }
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(format!(
            "ERROR: Missing required fields: {missing}. Keep calling {ASK_TOOL} until the user has provided them all."
        ));
    }
    Ok(format!("USER_FORM_SUBMITTED\n{}", lines.join("\n")))
}

fn answer(value: Option<&Value>) -> Option<String> {
    let text = value.filter(|value| !value.is_null()).map(plain)?;
    (!text.trim().is_empty()).then(|| text.chars().take(ANSWER_CHARS).collect())
}

fn line(name: &str, value: &str) -> String {
    format!("  {name}={value}")
}
