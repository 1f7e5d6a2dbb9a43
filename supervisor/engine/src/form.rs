//! Questions to a person, and the answers.

mod answered;
mod field;
mod joined;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::digest;
use crate::names::AgentName;

pub use answered::Answered;
pub(crate) use field::plain;
pub use field::{FieldType, FormField};
use joined::SEPARATOR;

/// The tool by which the supervisor's model asks the user, and the action of every form on the wire.
pub const ASK_TOOL: &str = "CAIPEAgentResponse";

/// The tool by which any agent asks the user: [`ASK_TOOL`] with other names for its arguments.
pub const REQUEST_INPUT_TOOL: &str = "request_user_input";

/// The only field of a question without fields of its own: any text is its answer.
pub const ANSWER_FIELD: &str = "answer";

/// The field of an approval of one call, with the choices [`APPROVE`] and [`REJECT`], for clients that only know forms.
pub const DECISION_FIELD: &str = "decision";

/// The value of [`DECISION_FIELD`] that lets the call run.
pub const APPROVE: &str = "approve";

/// The value of [`DECISION_FIELD`] that rejects the call.
pub const REJECT: &str = "reject";

/// The value of [`DECISION_FIELD`] that lets the call run, and all later calls of the tool in this conversation.
pub const ALWAYS: &str = "always";

/// The word before a text that a person gives as the result of a call, which is not made.
pub const RESPOND: &str = "respond";

/// A question to a person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Form {
    /// Identifies the interaction: no other one has this id. Empty in a form about several calls, which have an id each,
    /// and in the stored questions of earlier versions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// A digest of exactly what is asked: the agent, the tool and its arguments, or the question and its fields.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The tool call that waits: [`ASK_TOOL`], or the tool that needs approval.
    pub action: String,
    /// The call's arguments, for an approval.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
    /// Whether an approval may also allow later calls of the tool in this conversation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub always: bool,
    pub title: String,
    /// The question and its reason.
    pub description: String,
    /// The fields to fill in; in an approval, a field named [`Form::decision_field`] for each call.
    pub fields: Vec<FormField>,
    /// The questions for values that this form joins, as their agent asks them; empty if it joins none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Self>,
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
            ..Self::default()
        }
    }

    /// The short code of a call, by which a text decides it; none without an id.
    pub fn code(&self) -> Option<String> {
        (!self.id.is_empty()).then(|| digest::code(&self.id))
    }

    /// The text that decides a call: [`APPROVE`] or [`REJECT`], and the code of the call.
    pub fn choice(&self, word: &str) -> String {
        self.code().map_or_else(|| word.to_owned(), |code| format!("{word} {code}"))
    }

    /// The values of the field that decides a call.
    pub fn choices(&self) -> Vec<String> {
        let words = [APPROVE, REJECT].into_iter().chain(self.always.then_some(ALWAYS));
        words.map(|word| self.choice(word)).collect()
    }

    /// All answers in text that the call permits, for people: `` `approve 4f2a`, `reject 4f2a` or `respond 4f2a: TEXT` ``.
    pub fn text_answers(&self) -> String {
        // A text decides by the code only.
        let respond = self.code().map(|_| format!("{}: TEXT", self.choice(RESPOND)));
        let answers: Vec<String> =
            self.choices().into_iter().chain(respond).map(|answer| format!("`{answer}`")).collect();
        match answers.as_slice() {
            [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
            only => only.concat(),
        }
    }

    /// Gives an id and a digest to each call of the question that has none; `seed` is different for each question.
    pub(crate) fn identify(&mut self, agent: &AgentName, seed: &str) {
        if let [call] = self.calls().as_slice() {
            if self.id.is_empty() {
                (self.id, self.digest) = digest::identity(&call.asked(agent), seed);
            }
        } else if let Some(listed) = self.arguments.get_mut("calls").and_then(Value::as_array_mut) {
            for (at, listed) in listed.iter_mut().enumerate() {
                let call = Self::listed(listed);
                if call.id.is_empty() {
                    let (id, digest) = digest::identity(&call.asked(agent), &format!("{seed}/{at}"));
                    (listed["interaction_id"], listed["digest"]) = (id.into(), digest.into());
                }
            }
        }
        self.mark_fields();
    }

    /// What a call or a form asks in the name of this agent.
    fn asked(&self, agent: &AgentName) -> Value {
        if self.is_approval() {
            json!([agent.as_str(), self.action, self.arguments])
        } else {
            json!([agent.as_str(), self.action, self.title, self.description, self.fields])
        }
    }

    /// Removes all ids, so that [`Form::identify`] gives new ones.
    pub(crate) fn forget_ids(&mut self) {
        (self.id, self.digest) = Default::default();
        for call in self.arguments.get_mut("calls").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(call) = call.as_object_mut() {
                call.retain(|key, _| key != "interaction_id" && key != "digest");
            }
        }
    }

    /// The question without the offer to allow later calls too.
    #[must_use]
    pub(crate) fn without_always(mut self) -> Self {
        self.always = false;
        for call in self.arguments.get_mut("calls").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(call) = call.as_object_mut().filter(|_| self.action.contains(SEPARATOR)) {
                call.remove("always");
            }
        }
        self.mark_fields();
        self
    }

    /// Writes the id of its call into each field.
    fn mark_fields(&mut self) {
        for (at, call) in self.calls().iter().enumerate() {
            let decides = self.decision_field(at);
            let range = if call.is_approval() { 0..self.fields.len() } else { self.fields_of(at) };
            for field in &mut self.fields[range] {
                if call.is_approval() {
                    if field.field_name != decides {
                        continue;
                    }
                    field.field_values = Some(call.choices());
                }
                (field.interaction_id, field.digest) = (call.id.clone(), call.digest.clone());
            }
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
        several.map_or_else(|| vec![self.clone()], |calls| calls.iter().map(Self::listed).collect())
    }

    /// One call of a form about several.
    fn listed(call: &Value) -> Self {
        let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let arguments = call.get("arguments").cloned().unwrap_or_default();
        Self {
            id: text("interaction_id"),
            digest: text("digest"),
            action: text("name"),
            arguments,
            always: call.get("always") == Some(&Value::Bool(true)),
            ..Self::default()
        }
    }

    /// The call as an entry of a form about several.
    fn entry(&self) -> Value {
        let mut entry = json!({ "name": self.action, "arguments": self.arguments });
        if !self.id.is_empty() {
            entry["interaction_id"] = json!(self.id);
            entry["digest"] = json!(self.digest);
        }
        if self.always {
            entry["always"] = json!(true);
        }
        entry
    }

    /// The name of the field that decides the call with this index in [`Form::calls`].
    pub fn decision_field(&self, call: usize) -> String {
        if self.calls().len() < 2 {
            DECISION_FIELD.to_owned()
        } else {
            format!("{DECISION_FIELD}_{}", call + 1)
        }
    }
}

impl FormField {
    /// The field of a question that any text answers.
    pub fn any_text() -> Self {
        Self {
            field_name: ANSWER_FIELD.to_owned(),
            field_description: "Your answer".to_owned(),
            field_type: FieldType::TextArea,
            required: true,
            ..Self::default()
        }
    }

    /// Whether the field may decide a call.
    fn is_decision(&self) -> bool {
        self.field_name.starts_with(DECISION_FIELD)
    }

    /// The arguments are in the field, because upstream's web UI shows no others with a form.
    fn decision(field_name: String, tool: &str, arguments: &Value) -> Self {
        Self {
            field_name,
            field_description: format!("Whether {tool} with {arguments} may run"),
            field_type: FieldType::Select,
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
    /// Run the call, and all later calls of this tool of this agent in the conversation. Fits an approval that offers it only.
    Always,
    /// Do not run the call: this text is its result. Fits an approval only.
    Respond { message: String },
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
            Self::Always => question.is_approval() && question.always,
            Self::Edit { .. } | Self::Respond { .. } => question.is_approval(),
            Self::Submit { .. } => !question.is_approval(),
        }
    }
}

/// A decision about exactly one waiting call: the one with this id and this digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundDecision {
    /// The [`Form::id`] of the call.
    pub interaction: String,
    /// The [`Form::digest`] of the call.
    pub digest: String,
    pub decision: Decision,
}

impl BoundDecision {
    /// The decision about this call.
    pub fn about(call: &Form, decision: Decision) -> Self {
        Self { interaction: call.id.clone(), digest: call.digest.clone(), decision }
    }

    /// Whether the decision is about this call.
    pub fn is_about(&self, call: &Form) -> bool {
        self.interaction == call.id && self.digest == call.digest
    }
}
