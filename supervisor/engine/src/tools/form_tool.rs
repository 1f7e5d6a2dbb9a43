//! `request_user_input` and `CAIPEAgentResponse`: asking the user with a form.

use serde_json::{Map, Value};

use crate::form::{ASK_TOOL, Form, FormField, REQUEST_INPUT_TOOL, plain};

use super::form_fields;

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

/// The result of a form that the user submitted with these values, in the form that prompts describe to models.
pub(crate) fn submitted(form: &Form, values: &Map<String, Value>) -> String {
    let line =
        |field: &FormField| Some(format!("  {}={}", field.field_name, shown(values.get(&field.field_name)?)));
    let (required, optional): (Vec<_>, Vec<_>) = form.fields.iter().partition(|field| field.required);
    let lines: Vec<String> = required.into_iter().chain(optional).filter_map(line).collect();
    let lines = if lines.is_empty() { "  (no values)".to_owned() } else { lines.join("\n") };
    format!("USER_FORM_SUBMITTED\n{lines}")
}

/// A value in a line. Further lines of a text are indented, so that they do not look like fields.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        value => plain(value).replace('\n', "\n    "),
    }
}
