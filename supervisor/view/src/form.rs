//! A question to the user, and the message that answers it.

use caipe_a2a::model::Part;
use serde::Deserialize;
use serde_json::{Map, Number, Value, json};

use super::clean::{clean, one_line};

/// The action of a form without one: the tool with which upstream's model asks the user.
const ASK_ACTION: &str = "CAIPEAgentResponse";

/// The field of an approval whose value is the decision.
const DECISION_FIELD: &str = "decision";

/// Most fields of a form; further ones are ignored.
const MOST_FIELDS: usize = 100;

/// A question to the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// A heading; may be empty.
    pub title: String,
    /// The question and its reason; may be empty.
    pub description: String,
    /// The expected kind of answer.
    pub kind: FormKind,
    action: String,
    /// The id of the interaction and its digest, which the answer repeats; empty if the agent gives none.
    identity: Map<String, Value>,
}

/// The kind of answer that a question expects.
#[derive(Debug, Clone, PartialEq)]
pub enum FormKind {
    /// Values for these fields.
    Fields(Vec<Field>),
    /// Yes or no to a call.
    Approval {
        /// The call's name and arguments, for people.
        call: String,
        /// The arguments, which the answer may change; none if the agent does not tell them.
        arguments: Option<Box<Map<String, Value>>>,
        /// The text that approves the call.
        approve: String,
        /// Whether an approval may also allow later calls of the tool.
        always: bool,
    },
    /// Any text.
    Words,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The key of the answer.
    pub name: String,
    /// A name for people; may be empty.
    pub label: String,
    /// A description for people; may be empty.
    pub description: String,
    /// The kind of value.
    pub kind: FieldKind,
    /// The allowed values; empty means any.
    pub choices: Vec<Value>,
    /// An example of a value; may be empty.
    pub placeholder: String,
    /// The value if the user gives none.
    pub default: Option<Value>,
    /// Whether the user must give a value.
    pub required: bool,
    /// The least number, characters or choices.
    pub min: Option<Number>,
    /// The greatest number, the most characters or choices.
    pub max: Option<Number>,
    /// Why the agent rejected the last value.
    pub error: Option<String>,
    /// The field as it was received; the answer repeats it with its value.
    wire: Map<String, Value>,
}

/// The kind of value that a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldKind {
    /// Text of one line.
    Text,
    /// Text of any number of lines.
    TextArea,
    /// One of the choices.
    Select,
    /// Any of the choices.
    MultiSelect,
    Boolean,
    Number,
    Url,
    Email,
    /// A date as `YYYY-MM-DD`.
    Date,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FormAnswer {
    /// Values by field name, in the form's order.
    Values(Map<String, Value>),
    /// The call may run.
    Approve,
    /// The call may run, and all later calls of the tool in the conversation.
    Always,
    /// The call may run with these arguments instead.
    Edit(Map<String, Value>),
    /// The call may not run: this text is its result.
    Respond(String),
    /// The call may not run, with the reason.
    Reject(String),
    Words(String),
}

#[derive(Deserialize)]
struct WireForm {
    input_title: Option<String>,
    input_description: Option<String>,
    input_fields: Option<Vec<Map<String, Value>>>,
    response: Option<String>,
    action_name: Option<String>,
    arguments: Option<Value>,
    always: Option<bool>,
}

impl Form {
    /// The heading and the question, without those that are empty, and once if they are the same.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let question = Some(&self.description).filter(|text| **text != self.title);
        let texts = [Some(&self.title), question].into_iter().flatten();
        texts.map(String::as_str).filter(|text| !text.is_empty())
    }

    /// The id of the interaction; `None` if the agent gives none.
    pub fn interaction_id(&self) -> Option<&str> {
        self.identity.get("interaction_id").and_then(Value::as_str)
    }

    /// Reads the data part of a form artifact; `None` if it is not a form.
    pub fn read(data: &Value) -> Option<Self> {
        if data.get("user_input")? != &Value::Bool(true) {
            return None;
        }
        let wire = WireForm::deserialize(data).ok()?;
        let text = |text: Option<String>| text.map(|text| clean(text.trim())).filter(|text| !text.is_empty());
        let title = one_line(&wire.input_title.unwrap_or_default());
        let description = text(wire.input_description).or_else(|| text(wire.response)).unwrap_or_default();
        let action =
            wire.action_name.filter(|name| !name.is_empty()).unwrap_or_else(|| ASK_ACTION.to_owned());
        let fields = wire.input_fields.unwrap_or_default();
        let fields: Vec<Field> = fields.into_iter().take(MOST_FIELDS).filter_map(Field::read).collect();
        let kind = if action != ASK_ACTION && fields.iter().all(|field| field.name == DECISION_FIELD) {
            let choice = fields.first().and_then(|field| field.choices.first()).and_then(Value::as_str);
            let approve = one_line(choice.unwrap_or("approve"));
            let always = wire.always == Some(true);
            let call = call(&action, wire.arguments.as_ref());
            let arguments = match wire.arguments {
                Some(Value::Object(arguments)) => Some(Box::new(arguments)),
                _ => None,
            };
            FormKind::Approval { call, arguments, approve, always }
        } else if fields.is_empty() {
            FormKind::Words
        } else {
            FormKind::Fields(fields)
        };
        Some(Self { title, description, kind, action, identity: identity(data) })
    }

    /// A question in words only.
    pub(super) fn words(question: &str) -> Self {
        Self {
            title: String::new(),
            description: clean(question.trim()),
            kind: FormKind::Words,
            action: ASK_ACTION.to_owned(),
            identity: Map::new(),
        }
    }

    /// The parts of the message that answers: words for people and for clients without forms, and the decision
    /// as data, in the shape that upstream's web client sends.
    pub fn parts(&self, answer: &FormAnswer) -> Vec<Part> {
        let action = &self.action;
        match answer {
            FormAnswer::Words(text) => vec![Part::text(text.as_str())],
            FormAnswer::Approve => {
                vec![Part::text("approve"), self.resume(json!({"type": "approve", "action_name": action}))]
            }
            FormAnswer::Always => {
                let decision = json!({"type": "approve", "action_name": action, "always": true});
                vec![Part::text("always"), self.resume(decision)]
            }
            FormAnswer::Edit(arguments) => {
                let edited = json!({"name": action, "args": arguments});
                let decision = json!({"type": "edit", "action_name": action, "edited_action": edited});
                vec![Part::text(as_lines(arguments)), self.resume(decision)]
            }
            FormAnswer::Respond(message) => vec![
                Part::text(message.as_str()),
                self.resume(json!({"type": "respond", "action_name": action, "message": message})),
            ],
            FormAnswer::Reject(message) => vec![
                Part::text(message.as_str()),
                self.resume(json!({"type": "reject", "action_name": action, "message": message})),
            ],
            FormAnswer::Values(values) => {
                let inputs = json!({
                    "metadata": {"input_fields": self.filled(values)},
                    "user_inputs": values,
                });
                let decision = json!({"type": "edit", "action_name": action, "args": {"args": inputs}});
                vec![Part::text(as_lines(values)), self.resume(decision)]
            }
        }
    }

    /// The decision, about this interaction.
    fn resume(&self, mut decision: Value) -> Part {
        for (key, value) in &self.identity {
            decision[key] = value.clone();
        }
        Part::data(json!({"resume": {"decisions": [decision]}}))
    }

    fn filled(&self, values: &Map<String, Value>) -> Vec<Map<String, Value>> {
        let FormKind::Fields(fields) = &self.kind else { return Vec::new() };
        let fill = |field: &Field| {
            let mut wire = field.wire.clone();
            wire.insert("value".to_owned(), values.get(&field.name).cloned().unwrap_or(Value::Null));
            wire
        };
        fields.iter().map(fill).collect()
    }
}

impl Field {
    fn read(wire: Map<String, Value>) -> Option<Self> {
        let text = |key: &str| wire.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = text("field_name").to_owned();
        if name.is_empty() {
            return None;
        }
        let given = |key: &str| wire.get(key).filter(|value| !value.is_null()).cloned();
        let choices = wire.get("field_values").and_then(Value::as_array).cloned().unwrap_or_default();
        let default = given("value").or_else(|| given("default_value"));
        let number = |key: &str| wire.get(key).and_then(Value::as_number).cloned();
        Some(Self {
            label: one_line(text("field_label")),
            description: one_line(text("field_description")),
            kind: FieldKind::read(wire.get("field_type"), &choices, default.as_ref()),
            choices,
            placeholder: one_line(text("placeholder")),
            default,
            min: number("min"),
            max: number("max"),
            error: wire.get("error").and_then(Value::as_str).map(one_line),
            required: wire.get("required").and_then(Value::as_bool).unwrap_or(false),
            name,
            wire,
        })
    }
}

impl FieldKind {
    /// The named kind. Without a known name, the choices or the default tell it: upstream's forms name none.
    fn read(name: Option<&Value>, choices: &[Value], default: Option<&Value>) -> Self {
        let named = name.and_then(|name| Self::deserialize(name).ok());
        named.unwrap_or(match default {
            _ if !choices.is_empty() => Self::Select,
            Some(Value::Bool(_)) => Self::Boolean,
            Some(Value::Number(_)) => Self::Number,
            _ => Self::Text,
        })
    }
}

/// A JSON value as a person would write it.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => one_line(&other.to_string()),
    }
}

/// `delete_issue {"key":"CAIPE-1"}`.
fn call(action: &str, arguments: Option<&Value>) -> String {
    arguments.map_or_else(|| one_line(action), |arguments| one_line(&format!("{action} {arguments}")))
}

fn as_lines(values: &Map<String, Value>) -> String {
    let line = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}: {text}"),
        Value::Array(_) => format!("{name}: {}", plain(value)),
        other => format!("{name}: {other}"),
    };
    let lines: Vec<String> = values.iter().map(line).collect();
    if lines.is_empty() { "Form submitted".to_owned() } else { lines.join("\n") }
}

/// The members that identify the interaction.
fn identity(data: &Value) -> Map<String, Value> {
    let member = |key: &str| Some((key.to_owned(), data.get(key)?.clone()));
    ["interaction_id", "digest"].into_iter().filter_map(member).collect()
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
