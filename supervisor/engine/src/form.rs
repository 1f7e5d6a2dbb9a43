//! Questions to a person, and the answers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The tool by which a model asks the user.
pub const ASK_TOOL: &str = "CAIPEAgentResponse";

/// The only field of a question without fields of its own: any text is its answer.
pub const ANSWER_FIELD: &str = "answer";

/// The field of an approval of one call, with the choices [`APPROVE`] and [`REJECT`], for clients that only know forms.
pub const DECISION_FIELD: &str = "decision";

/// The value of [`DECISION_FIELD`] that lets the call run.
pub const APPROVE: &str = "approve";

/// The value of [`DECISION_FIELD`] that rejects the call.
pub const REJECT: &str = "reject";

/// A question to a person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Form {
    /// The tool call that waits: [`ASK_TOOL`], or the tool that needs approval.
    pub action: String,
    /// The call's arguments, for an approval.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
    pub title: String,
    /// The question and its reason.
    pub description: String,
    /// The fields to fill in; in an approval, a field named [`Form::decision_field`] for each call.
    pub fields: Vec<FormField>,
}

impl Form {
    /// The question whether this call may run.
    pub fn approval(tool: &str, arguments: Value) -> Self {
        Self {
            action: tool.to_owned(),
            title: format!("Approve {tool}?"),
            description: format!("The agent wants to call {tool}."),
            fields: vec![FormField::decision(DECISION_FIELD.to_owned(), tool, &arguments)],
            arguments,
        }
    }

    /// Whether the form asks about tool calls, rather than for values.
    pub fn is_approval(&self) -> bool {
        self.action != ASK_TOOL
    }

    /// The calls of an approval, each as a form of its own; the form itself if it asks about one call.
    pub fn calls(&self) -> Vec<Self> {
        let listed = self.arguments.get("calls").and_then(Value::as_array);
        let several = listed.filter(|calls| !calls.is_empty() && self.action.contains(SEPARATOR));
        let Some(calls) = several else { return vec![self.clone()] };
        let call = |call: &Value| Self {
            action: call.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            arguments: call.get("arguments").cloned().unwrap_or_default(),
            ..Self::default()
        };
        calls.iter().map(call).collect()
    }

    /// The name of the field that decides the call with this index in [`Form::calls`].
    pub fn decision_field(&self, call: usize) -> String {
        if self.calls().len() < 2 {
            DECISION_FIELD.to_owned()
        } else {
            format!("{DECISION_FIELD}_{}", call + 1)
        }
    }

    /// One form with the questions of all these forms, and a decision for each call.
    pub fn joined(forms: Vec<Self>) -> Self {
        if forms.len() < 2 {
            return forms.into_iter().next().unwrap_or_default();
        }
        let texts = |text: fn(&Self) -> String, between: &str| {
            let texts: Vec<String> = forms.iter().map(text).filter(|text| !text.is_empty()).collect();
            texts.join(between)
        };
        let mut fields: Vec<FormField> = Vec::new();
        for field in forms.iter().filter(|form| !form.is_approval()).flat_map(|form| &form.fields) {
            if fields.iter().all(|known| known.field_name != field.field_name) {
                fields.push(field.clone());
            }
        }
        let titles = forms.iter().map(|form| form.title.as_str()).filter(|title| !title.is_empty());
        let mut titles: Vec<&str> = titles.collect();
        titles.dedup();
        let (title, description) = (titles.join(" "), texts(Self::with_arguments, "\n\n"));
        if !forms.iter().any(Self::is_approval) {
            return Self { action: ASK_TOOL.to_owned(), title, description, fields, ..Self::default() };
        }
        let calls: Vec<Self> = forms.iter().flat_map(Self::calls).collect();
        for (at, call) in calls.iter().enumerate().filter(|(_, call)| call.is_approval()) {
            let field = format!("{DECISION_FIELD}_{}", at + 1);
            fields.push(FormField::decision(field, &call.action, &call.arguments));
        }
        let calls = calls.iter().map(|call| json!({ "name": call.action, "arguments": call.arguments }));
        let arguments = json!({ "calls": calls.collect::<Vec<_>>() });
        Self { action: texts(|form| form.action.clone(), SEPARATOR), arguments, title, description, fields }
    }

    fn with_arguments(&self) -> String {
        match &self.arguments {
            Value::Null => self.description.clone(),
            arguments => format!("{}\n{arguments}", self.description),
        }
    }
}

/// Separates the actions of a form that asks about several calls.
const SEPARATOR: &str = ", ";

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FormField {
    /// The key of the answer.
    pub field_name: String,
    pub field_description: String,
    /// The only allowed values; `None` allows any.
    pub field_values: Option<Vec<String>>,
    pub default_value: Option<Value>,
    pub required: bool,
    /// The answer so far.
    pub value: Option<Value>,
}

impl FormField {
    /// The arguments are in the field, because upstream's web UI shows no others with a form.
    fn decision(field_name: String, tool: &str, arguments: &Value) -> Self {
        Self {
            field_name,
            field_description: format!("Whether {tool} with {arguments} may run"),
            field_values: Some([APPROVE, REJECT].map(str::to_owned).to_vec()),
            required: true,
            ..Self::default()
        }
    }
}

/// A person's decision about one waiting call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Decision {
    /// Continue as asked; for a form, without values.
    Approve,
    /// Run the call with these arguments instead. Fits an approval only.
    Edit { arguments: Map<String, Value> },
    /// The answers to a form, by field name. Fits a form only.
    Submit { values: Map<String, Value> },
    Reject {
        /// The message to the model.
        message: String,
    },
}

impl Decision {
    /// Whether the decision can answer this question.
    pub fn fits(&self, question: &Form) -> bool {
        match self {
            Self::Approve | Self::Reject { .. } => true,
            Self::Edit { .. } => question.is_approval(),
            Self::Submit { .. } => !question.is_approval(),
        }
    }
}
