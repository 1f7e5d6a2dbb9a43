//! The response tool: the final answer of a model in structured mode.

use serde_json::{Map, Value};

use crate::form::{ASK_TOOL, Form, FormField};

/// The arguments of a response call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Response {
    pub(crate) content: String,
    /// The form that the user must fill in before the run can continue.
    pub(crate) question: Option<Form>,
}

impl Response {
    /// Parses the arguments. The content may also have the name `message` or `response`.
    pub(crate) fn parse(arguments: &Map<String, Value>) -> Self {
        let content = ["content", "message", "response"]
            .iter()
            .filter_map(|key| arguments.get(*key)?.as_str())
            .find(|text| !text.trim().is_empty())
            .unwrap_or_default()
            .to_owned();
        let metadata = arguments.get("metadata").and_then(Value::as_object);
        let asks = is_true(arguments.get("require_user_input"))
            || is_true(metadata.and_then(|data| data.get("user_input")));
        let question = asks.then(|| Form {
            action: ASK_TOOL.to_owned(),
            description: content.clone(),
            fields: fields(metadata.and_then(|data| data.get("input_fields")), true),
            ..Form::default()
        });
        Self { content, question }
    }
}

fn is_true(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(truth)) => *truth,
        Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
        _ => false,
    }
}

/// Most fields of a form.
const MOST_FIELDS: usize = 100;

/// The valid fields of a list; `required` is the default of their member of that name.
pub(crate) fn fields(listed: Option<&Value>, required: bool) -> Vec<FormField> {
    let listed = listed.and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(|value| field(value, required)).take(MOST_FIELDS).collect()
}

fn field(value: &Value, required: bool) -> Option<FormField> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let given = |key: &str| value.get(key).filter(|value| !value.is_null()).cloned();
    let field_name = text("field_name");
    (!field_name.is_empty()).then(|| FormField {
        field_name,
        field_description: text("field_description"),
        field_values: value
            .get("field_values")
            .and_then(Value::as_array)
            .map(|values| values.iter().map(plain).collect()),
        default_value: given("default_value"),
        required: value.get("required").map_or(required, |value| is_true(Some(value))),
        value: given("value"),
        ..FormField::default()
    })
}

/// A value without JSON's quotes.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
