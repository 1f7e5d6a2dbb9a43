//! What a client's message asks for: a new question, or the answer to one of ours (upstream contract 3.7).

use caipe_a2a::model::{Content, Message as A2aMessage, Metadata};
use caipe_engine::{ANSWER_FIELD, ASK_TOOL, Decision, Form};
use caipe_model::{Message, Role};
use serde_json::{Map, Value};

/// A client's message, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The user's e-mail address, where the client gives it.
    pub user: Option<String>,
    /// The trace that the client wants this to belong to.
    pub trace_id: Option<String>,
    text: String,
    decisions: Vec<Decision>,
}

/// What a message is to the run.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Something said.
    Message(Message),
    /// Answers to what was asked.
    Decisions(Vec<Decision>),
}

impl Request {
    /// Reads a message.
    ///
    /// # Errors
    /// A located message when it says nothing that can be read.
    pub fn read(message: &A2aMessage) -> Result<Self, String> {
        let decisions = decisions(message)?;
        let texts: Vec<String> = message.parts.iter().filter_map(|part| readable(&part.content)).collect();
        let text = texts.join("\n");
        if text.trim().is_empty() && decisions.is_empty() {
            return Err(
                "message.parts: there is nothing to answer; send a text part with a question".to_owned()
            );
        }
        let metadata = message.metadata.as_ref();
        let user = text_member(metadata, "user_email").or_else(|| user_line(&text).map(str::to_owned));
        let trace_id =
            text_member(metadata, "trace_id").map(|id| id.to_lowercase()).filter(|id| is_trace_id(id));
        Ok(Self { user, trace_id, text, decisions })
    }

    /// A message as it is kept in a task's record.
    ///
    /// # Errors
    /// When the stored message cannot be read.
    pub fn of_stored(message: &Value) -> Result<Self, String> {
        let message: A2aMessage =
            serde::Deserialize::deserialize(message).map_err(|error: serde_json::Error| error.to_string())?;
        Self::read(&message)
    }

    /// What it is to a run that waits for answers to `questions`, or for nothing; `addressed` if it names the task
    /// that waits.
    pub fn reply(self, questions: &[&Form], addressed: bool) -> Reply {
        if questions.is_empty() {
            return Reply::Message(Message::text(Role::User, self.text));
        }
        if !self.decisions.is_empty() {
            return Reply::Decisions(self.decisions);
        }
        match spoken(&self.text, questions, addressed) {
            Some(decision) => Reply::Decisions(vec![decision]),
            None => Reply::Message(Message::text(Role::User, self.text)),
        }
    }
}

/// A part as text for the model; data of our own protocol is not for it.
fn readable(content: &Content) -> Option<String> {
    match content {
        Content::Text(text) => Some(text.clone()),
        Content::Data(data) if data.get("resume").is_none() => Some(data.to_string()),
        _ => None,
    }
}

fn text_member(metadata: Option<&Metadata>, name: &str) -> Option<String> {
    let text = metadata?.get(name)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// `by user: someone@example.com` as the first line.
fn user_line(text: &str) -> Option<&str> {
    let line = text.lines().next()?.strip_prefix("by user:")?.trim();
    (!line.is_empty()).then_some(line)
}

/// A trace id goes into headers and metadata of others; anything but hex digits is not one.
fn is_trace_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The decisions in `message.metadata.resume` or in a data part's `resume`. One that cannot be read is a fault: if
/// it were left out, the next one would be taken for it, and an approval given to another call than was meant.
fn decisions(message: &A2aMessage) -> Result<Vec<Decision>, String> {
    let in_metadata = message.metadata.as_ref().and_then(|metadata| metadata.get("resume"));
    let in_parts = message.parts.iter().find_map(|part| match &part.content {
        Content::Data(data) => data.get("resume"),
        _ => None,
    });
    let Some(resume) = in_metadata.or(in_parts) else { return Ok(Vec::new()) };
    let list = resume.get("decisions").and_then(Value::as_array);
    let list = list.ok_or("message.parts: resume.decisions: give a list of decisions")?;
    let located = |(index, value)| {
        let types = "give a type: approve, accept, edit, reject or response";
        decision(value).ok_or_else(|| format!("message.parts: resume.decisions[{index}]: {types}"))
    };
    list.iter().enumerate().map(located).collect()
}

fn decision(value: &Value) -> Option<Decision> {
    let message = || value.get("message").or_else(|| value.get("args")).and_then(Value::as_str);
    // A form without fields is sent as an edit of nothing; a call that is to be approved must not lose its arguments
    // by that.
    let submit = || match submitted(value).filter(|values| !values.is_empty()) {
        Some(values) => Decision::Submit { values },
        None => Decision::Approve,
    };
    match value.get("type")?.as_str()? {
        "approve" | "accept" | "edit" => Some(submit()),
        "reject" | "response" => {
            Some(Decision::Reject { message: message().unwrap_or("User rejected the request").to_owned() })
        }
        _ => None,
    }
}

/// The values of an edit: `edited_action.args` (new form) or `args.args` (old form), there in `user_inputs`,
/// in the fields' values, or as plain arguments. Those of another action than a form are its arguments as they
/// stand, whatever they are called.
fn submitted(value: &Value) -> Option<Map<String, Value>> {
    let args = value.pointer("/edited_action/args").or_else(|| value.pointer("/args/args"))?.as_object()?;
    let action = value.pointer("/edited_action/name").or_else(|| value.get("action_name"));
    let is_form = action.and_then(Value::as_str).is_none_or(|name| name == ASK_TOOL);
    if !is_form && !args.contains_key("user_inputs") {
        return Some(args.clone());
    }
    let inner = args.get("args").and_then(Value::as_object).unwrap_or(args);
    let mut values = field_values(inner);
    if let Some(inputs) = inner.get("user_inputs").and_then(Value::as_object) {
        values.extend(inputs.clone());
    }
    if values.is_empty() && !inner.contains_key("metadata") && !inner.contains_key("user_inputs") {
        values.clone_from(inner);
    }
    Some(values)
}

fn field_values(args: &Map<String, Value>) -> Map<String, Value> {
    let fields =
        args.get("metadata").and_then(|metadata| metadata.get("input_fields")).and_then(Value::as_array);
    let pair = |field: &Value| {
        let value = field.get("value").filter(|value| !value.is_null())?;
        Some((field.get("field_name")?.as_str()?.to_owned(), value.clone()))
    };
    fields.map(|fields| fields.iter().filter_map(pair).collect()).unwrap_or_default()
}

/// A decision in words, as a client without forms sends it: `key: value` lines for a form, a plain yes or no for an
/// approval. Lines of a message that names no task count only if they name a field of the form: they may as well be
/// the next question.
fn spoken(text: &str, questions: &[&Form], addressed: bool) -> Option<Decision> {
    if questions.iter().all(|form| form.action != ASK_TOOL && form.fields.is_empty()) {
        return verdict(text);
    }
    let is_field =
        |key: &String| questions.iter().flat_map(|form| &form.fields).any(|f| f.field_name == *key);
    if addressed && is_in_words(questions) {
        let answer = (ANSWER_FIELD.to_owned(), Value::from(body(text).trim()));
        return Some(Decision::Submit { values: Map::from_iter([answer]) });
    }
    let values = key_values(text)?;
    (addressed || values.keys().any(is_field)).then_some(Decision::Submit { values })
}

/// Whether there is one question, put in words.
fn is_in_words(questions: &[&Form]) -> bool {
    let [Form { fields, .. }] = questions else { return false };
    matches!(fields.as_slice(), [field] if field.field_name == ANSWER_FIELD)
}

/// A message that is nothing but a yes or a no.
fn verdict(text: &str) -> Option<Decision> {
    let word = body(text).trim().trim_end_matches(['.', '!']).to_lowercase();
    match word.as_str() {
        "yes" | "y" | "ok" | "okay" | "approve" | "approved" | "accept" => Some(Decision::Approve),
        "no" | "n" | "reject" | "rejected" | "deny" | "denied" => {
            Some(Decision::Reject { message: "User rejected the request".to_owned() })
        }
        _ => None,
    }
}

/// The text without the line that says who wrote it.
fn body(text: &str) -> &str {
    text.strip_prefix("by user:").and_then(|rest| rest.split_once("\n\n")).map_or(text, |(_, body)| body)
}

/// `key: value` lines.
fn key_values(text: &str) -> Option<Map<String, Value>> {
    let pair = |line: &str| {
        let (key, value) = line.split_once(": ")?;
        Some((key.trim().trim_start_matches("- ").to_owned(), Value::from(value.trim())))
    };
    let values: Map<String, Value> = body(text).lines().filter_map(pair).collect();
    (!values.is_empty()).then_some(values)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
