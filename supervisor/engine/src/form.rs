//! Questions to a human, and the answers (upstream contract 3.7).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tool by which a model asks the user.
pub const ASK_TOOL: &str = "CAIPEAgentResponse";

/// The only field of a question that is put in words: whatever is said is its answer.
pub const ANSWER_FIELD: &str = "answer";

/// A question to a human.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Form {
    /// The tool call that waits: [`ASK_TOOL`], or the tool that needs approval.
    pub action: String,
    /// The call's arguments, for an approval.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
    /// A heading.
    pub title: String,
    /// What is asked, and why.
    pub description: String,
    /// What to fill in; none for a plain approval.
    pub fields: Vec<FormField>,
}

/// Something to fill in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FormField {
    /// The key of the answer.
    pub field_name: String,
    /// What is asked.
    pub field_description: String,
    /// The choices, if there are only these.
    pub field_values: Option<Vec<String>>,
    /// What holds if nothing is chosen.
    pub default_value: Option<Value>,
    /// Whether it must be answered.
    pub required: bool,
    /// The answer so far.
    pub value: Option<Value>,
}

/// What a human decided about one waiting call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Decision {
    /// Go on as asked.
    Approve,
    /// Go on with these arguments; for a form, the answers under their field names.
    Submit {
        /// The arguments or answers.
        values: Map<String, Value>,
    },
    /// Do not.
    Reject {
        /// What to tell the model.
        message: String,
    },
}
