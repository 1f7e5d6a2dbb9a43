//! The response tool: the final answer of a model in structured mode.

use serde_json::{Map, Value};

use crate::form::{ASK_TOOL, Form, FormField};

use super::form_fields::{self, is_true};

/// The arguments of a response call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Response {
    pub(crate) content: String,
    /// The form that the user must fill in before the run can continue.
    pub(crate) question: Option<Form>,
}

impl Response {
    /// Parses the arguments. A question without fields takes any
    /// text. The error is for the model.
    pub(crate) fn parse(arguments: &Map<String, Value>) -> Result<Self, String> {
        let content = Self::content(arguments);
        let metadata = arguments.get("metadata").and_then(Value::as_object);
        let asks = is_true(arguments.get("require_user_input"))
            || is_true(metadata.and_then(|data| data.get("user_input")));
        let question = asks.then(|| {
            let listed = metadata.and_then(|data| data.get("input_fields"));
            let mut fields = form_fields::fields("metadata.input_fields", listed, true)?;
            if fields.is_empty() {
                fields.push(FormField::any_text());
            }
            let (action, description) = (ASK_TOOL.to_owned(), content.clone());
            Ok::<_, String>(Form { action, description, fields, ..Form::default() })
        });
        Ok(Self { content, question: question.transpose()? })
    }

    /// The answer. It may also have the name `message` or `response`.
    pub(crate) fn content(arguments: &Map<String, Value>) -> String {
        let mut texts =
            ["content", "message", "response"].iter().filter_map(|key| arguments.get(*key)?.as_str());
        texts.find(|text| !text.trim().is_empty()).unwrap_or_default().to_owned()
    }
}
