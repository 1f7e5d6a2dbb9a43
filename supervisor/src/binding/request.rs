//! What a client's message asks for: a new question, or the answer to one of ours (upstream contract 3.7).

use caipe_a2a::model::{Content, Message as A2aMessage, Metadata};
use caipe_engine::Decision;
use caipe_model::{Message, Role};
use caipe_store::TaskRecord;
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
        let decisions = decisions(message);
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

    /// The message that a task began with.
    ///
    /// # Errors
    /// When the stored message cannot be read.
    pub fn of_record(record: &TaskRecord) -> Result<Self, String> {
        let message: A2aMessage =
            serde_json::from_value(record.request.clone()).map_err(|error| error.to_string())?;
        Self::read(&message)
    }

    /// What it is to a run that waits for an answer, or does not.
    pub fn reply(self, waiting: bool) -> Reply {
        if waiting && !self.decisions.is_empty() {
            return Reply::Decisions(self.decisions);
        }
        if waiting && let Some(values) = key_values(&self.text) {
            return Reply::Decisions(vec![Decision::Submit { values }]);
        }
        Reply::Message(Message::text(Role::User, self.text))
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

/// The decisions in `message.metadata.resume` or in a data part's `resume`.
fn decisions(message: &A2aMessage) -> Vec<Decision> {
    let in_metadata = message.metadata.as_ref().and_then(|metadata| metadata.get("resume"));
    let in_parts = message.parts.iter().find_map(|part| match &part.content {
        Content::Data(data) => data.get("resume"),
        _ => None,
    });
    let list = in_metadata.or(in_parts).and_then(|resume| resume.get("decisions")).and_then(Value::as_array);
    list.map(|list| list.iter().filter_map(decision).collect()).unwrap_or_default()
}

fn decision(value: &Value) -> Option<Decision> {
    let message = || value.get("message").or_else(|| value.get("args")).and_then(Value::as_str);
    match value.get("type")?.as_str()? {
        "approve" | "accept" => {
            Some(submitted(value).map_or(Decision::Approve, |values| Decision::Submit { values }))
        }
        "edit" => Some(Decision::Submit { values: submitted(value).unwrap_or_default() }),
        "reject" | "response" => {
            Some(Decision::Reject { message: message().unwrap_or("User rejected the request").to_owned() })
        }
        _ => None,
    }
}

/// The values of an edit: `edited_action.args` (new form) or `args.args` (old form), there in `user_inputs`,
/// in the fields' values, or as plain arguments.
fn submitted(value: &Value) -> Option<Map<String, Value>> {
    let args = value.pointer("/edited_action/args").or_else(|| value.pointer("/args/args"))?.as_object()?;
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

/// `key: value` lines, as a client without forms sends them.
fn key_values(text: &str) -> Option<Map<String, Value>> {
    let body =
        text.strip_prefix("by user:").and_then(|rest| rest.split_once("\n\n")).map_or(text, |(_, body)| body);
    let pair = |line: &str| {
        let (key, value) = line.split_once(": ")?;
        Some((key.trim().trim_start_matches("- ").to_owned(), Value::from(value.trim())))
    };
    let values: Map<String, Value> = body.lines().filter_map(pair).collect();
    (!values.is_empty()).then_some(values)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
