//! Reads the message of a client: a request, or the answer to a waiting interaction.

use std::collections::BTreeMap;

use caipe_a2a::model::{Content, Message as A2aMessage, Metadata};
use caipe_engine::{
    ANSWER_FIELD, ApprovedCall, BoundDecision, Decision, FieldType, Form, FormField, SCRATCHPAD_BYTES,
};
use caipe_model::{Message, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ACTIVITY_EXTENSION;
use super::decision::{self, SentDecision};

/// The member of a message's metadata in which a supervisor names the tools that a human must approve.
pub const REQUIRE_APPROVAL: &str = "require_approval";

/// The member of a message's metadata in which a supervisor names the tools that a person has allowed for the rest of the
/// conversation.
pub const ALWAYS_ALLOWED: &str = "always_allowed";

/// The member of a message's metadata in which a supervisor names the calls that a person has approved with the form of a
/// workflow.
pub const APPROVED_CALLS: &str = "approved_calls";

/// The member of a message's metadata with the files that a supervisor shares with the agent, by path; the name of the artifact with
/// those that the agent has changed.
pub const SCRATCHPAD: &str = "scratchpad";

/// The member of a message's metadata in which a supervisor names the tools of the agent that it answers itself.
pub const CLIENT_TOOLS: &str = "client_tools";

/// The name of the artifact with a call that the supervisor answers.
pub const CLIENT_TOOL_CALL: &str = "client_tool_call";

/// The member of a message's metadata that says which call the message answers: its `call`, and whether it `is_error`. The text of
/// the message is the result.
pub const CLIENT_TOOL_RESULT: &str = "client_tool_result";

/// The member of a message's metadata with the names of the agents on the way to the agent that gets it, the latter last.
pub const DELEGATION_PATH: &str = "delegation_path";

/// The member of a message's metadata with the user's e-mail address.
pub const USER_EMAIL: &str = "user_email";

/// The member of a message's metadata in which the server records its sender, replacing any that the client has sent.
pub const SENT_BY: &str = "sent_by";

/// The member of a message's metadata in which the server records the approvers of the resource that its sender is.
pub const APPROVER_AS: &str = "approver_as";

/// The text that upstream's Slack bot writes between the history of a thread and the message.
const CURRENT_QUESTION: &str = "Current question: ";

/// The limits of the approval patterns in a message.
const MOST_PATTERNS: usize = 1000;
const PATTERN_CHARS: usize = 128;

/// The most approved calls in a message.
const MOST_APPROVED: usize = 100;

/// A message of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The user's e-mail address, if the client gives it.
    pub user: Option<String>,
    /// The principal that sent it, if the server distinguishes its callers.
    pub sent_by: Option<String>,
    /// The approvers of the resource that its sender is.
    pub approver_as: Vec<String>,
    /// The trace that the client wants the run to belong to.
    pub trace_id: Option<String>,
    /// Further tools that need a person's approval, because the delegating supervisor demands it.
    pub require_approval: Vec<String>,
    /// The tools that a person has allowed for the rest of the conversation, as the delegating supervisor says.
    pub always_allowed: Vec<String>,
    /// The calls that a person has approved with the form of a workflow, as the delegating supervisor says.
    pub approved_calls: Vec<ApprovedCall>,
    /// The agents on the way to this agent, this one last, as the delegating supervisor says.
    pub delegation_path: Vec<String>,
    /// Whether the client wants the text of agents (the extension [`ACTIVITY_EXTENSION`]).
    pub agents_words: bool,
    text: String,
    decisions: Vec<SentDecision>,
}

/// The meaning of a message for its run.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A message for the model.
    Message(Message),
    /// Decisions about waiting interactions.
    Decisions(Vec<BoundDecision>),
    /// An ambiguous decision, and the reason, for people.
    Unclear(String),
}

impl Request {
    /// Reads a message.
    ///
    /// # Errors
    /// A located reason when the message has neither text nor decisions, or cannot be read.
    pub fn read(message: &A2aMessage) -> Result<Self, String> {
        let decisions = decision::sent_decisions(message)?;
        let texts: Vec<String> = message.parts.iter().filter_map(|part| readable(&part.content)).collect();
        let text = texts.join("\n");
        if text.trim().is_empty() && decisions.is_empty() {
            return Err(
                "message.parts: there is nothing to answer; send a text part with a question".to_owned()
            );
        }
        let metadata = message.metadata.as_ref();
        shared_files(metadata)?;
        client_tools(metadata)?;
        let user = text_member(metadata, USER_EMAIL).or_else(|| user_line(&text).map(str::to_owned));
        let trace_id =
            text_member(metadata, "trace_id").map(|id| id.to_lowercase()).filter(|id| is_trace_id(id));
        Ok(Self {
            user,
            sent_by: text_member(metadata, SENT_BY),
            approver_as: approver_as(metadata),
            trace_id,
            require_approval: patterns(metadata, REQUIRE_APPROVAL)?,
            always_allowed: patterns(metadata, ALWAYS_ALLOWED)?,
            approved_calls: approved_calls(metadata)?,
            delegation_path: patterns(metadata, DELEGATION_PATH)?,
            agents_words: message.extensions.iter().any(|uri| uri == ACTIVITY_EXTENSION),
            text,
            decisions,
        })
    }

    /// Reads a message of a task's record.
    ///
    /// # Errors
    /// When the stored message cannot be read.
    pub fn of_stored(message: &Value) -> Result<Self, String> {
        let message: A2aMessage =
            Deserialize::deserialize(message).map_err(|error: serde_json::Error| error.to_string())?;
        Self::read(&message)
    }

    /// Whether the message is meant as a decision, whatever waits.
    pub fn is_decision(&self) -> bool {
        !self.decisions.is_empty() || decision::names_codes(&self.text)
    }

    /// The meaning for a run that waits for answers to `questions`, or for nothing; `addressed` if the message names the
    /// waiting task.
    pub fn reply(self, questions: &[&Form], addressed: bool) -> Reply {
        if questions.is_empty() {
            return Reply::Message(Message::text(Role::User, self.text));
        }
        let decided = match self.decisions.as_slice() {
            [] => decisions_in_text(&self.text, questions, addressed),
            sent => Some(decision::matched(sent, questions)),
        };
        match decided {
            Some(Ok(decisions)) => Reply::Decisions(decisions),
            Some(Err(reason)) => Reply::Unclear(reason),
            None => Reply::Message(Message::text(Role::User, self.text)),
        }
    }
}

/// A part as text for the model; `None` for data of our own protocol.
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

fn approver_as(metadata: Option<&Metadata>) -> Vec<String> {
    let entries = metadata.and_then(|metadata| metadata.get(APPROVER_AS)?.as_array());
    entries.into_iter().flatten().filter_map(|entry| entry.as_str().map(str::to_owned)).collect()
}

/// `by user: someone@example.com` as the first line.
fn user_line(text: &str) -> Option<&str> {
    let line = text.lines().next()?.strip_prefix("by user:")?.trim();
    (!line.is_empty()).then_some(line)
}

/// Whether a text is a trace id: 32 hex digits, because trace ids are sent to others in headers and metadata.
fn is_trace_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The names or patterns of tools under a key of the metadata. A list that cannot be obeyed as a whole is an error.
fn patterns(metadata: Option<&Metadata>, key: &str) -> Result<Vec<String>, String> {
    let Some(list) = metadata.and_then(|metadata| metadata.get(key)) else {
        return Ok(Vec::new());
    };
    let pattern = |value: &Value| {
        value.as_str().filter(|text| text.chars().count() <= PATTERN_CHARS).map(str::to_owned)
    };
    let list = list.as_array().filter(|list| list.len() <= MOST_PATTERNS);
    let patterns = list.and_then(|list| list.iter().map(pattern).collect());
    patterns.ok_or_else(|| {
        format!(
            "message.metadata.{key}: give a list of at most {MOST_PATTERNS} patterns of at most {PATTERN_CHARS} characters"
        )
    })
}

/// The approved calls of the metadata. A list that cannot be read as a whole is an error.
fn approved_calls(metadata: Option<&Metadata>) -> Result<Vec<ApprovedCall>, String> {
    let Some(list) = metadata.and_then(|metadata| metadata.get(APPROVED_CALLS)) else {
        return Ok(Vec::new());
    };
    let calls: Vec<ApprovedCall> = Deserialize::deserialize(list)
        .map_err(|error| format!("message.metadata.{APPROVED_CALLS}: {error}"))?;
    if calls.len() > MOST_APPROVED {
        return Err(format!("message.metadata.{APPROVED_CALLS}: give at most {MOST_APPROVED} calls"));
    }
    Ok(calls)
}

/// The files that the delegating supervisor shares. They are no part of a [`Request`], because a copy of a message may have others.
///
/// # Errors
/// If they cannot be read as a whole.
pub fn shared_files(metadata: Option<&Metadata>) -> Result<Option<BTreeMap<String, String>>, String> {
    let Some(files) = metadata.and_then(|metadata| metadata.get(SCRATCHPAD)) else { return Ok(None) };
    let files: BTreeMap<String, String> =
        Deserialize::deserialize(files).map_err(|error| format!("message.metadata.{SCRATCHPAD}: {error}"))?;
    let bytes: usize = files.values().map(String::len).sum();
    if bytes > SCRATCHPAD_BYTES {
        return Err(format!("message.metadata.{SCRATCHPAD}: give at most {SCRATCHPAD_BYTES} bytes of text"));
    }
    Ok(Some(files))
}

/// The tools that the delegating supervisor answers. They are no part of a [`Request`] either.
///
/// # Errors
/// If they cannot be read as a whole.
pub fn client_tools(metadata: Option<&Metadata>) -> Result<Vec<String>, String> {
    patterns(metadata, CLIENT_TOOLS)
}

/// The answer of a client to a call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientToolResult {
    /// The id of the call.
    pub call: String,
    /// Whether the call has failed.
    #[serde(default)]
    pub is_error: bool,
}

impl ClientToolResult {
    /// The answer in a message, and its text; `None` if it is another message.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(message: &A2aMessage) -> Result<Option<(Self, String)>, String> {
        let member = message.metadata.as_ref().and_then(|metadata| metadata.get(CLIENT_TOOL_RESULT));
        let Some(member) = member else { return Ok(None) };
        let answer = Deserialize::deserialize(member)
            .map_err(|error| format!("message.metadata.{CLIENT_TOOL_RESULT}: {error}"))?;
        let texts = message.parts.iter().filter_map(|part| readable(&part.content));
        Ok(Some((answer, texts.collect::<Vec<_>>().join("\n"))))
    }
}

/// The decisions in a text, as a client without forms sends them: lines with the codes of approvals, `field: value` lines
/// for the one form that waits. The lines may be anywhere in the text, because a client may put a person's text into a
/// template; other lines may be the next question, unless the message names the waiting task.
fn decisions_in_text(
    text: &str,
    questions: &[&Form],
    addressed: bool,
) -> Option<Result<Vec<BoundDecision>, String>> {
    let body = own_words(body(text));
    let decided = decision::decisions_in_text(body, questions);
    if decided.is_some() {
        return decided;
    }
    if let [form] = questions {
        let only = only_field(form).filter(|_| addressed);
        let any_text =
            |field: &FormField| Map::from_iter([(field.field_name.clone(), Value::from(body.trim()))]);
        let values = filled(body, form)
            .or_else(|| only.map(any_text))
            .map(|values| BoundDecision::about(form, Decision::Submit { values }));
        if let Some(submitted) = values {
            return Some(Ok(vec![submitted]));
        }
    }
    let is_meant = addressed || questions.iter().any(|form| filled(body, form).is_some());
    is_meant.then(|| Err(decision::waiting_calls(questions)))
}

/// The only field of a form, if a whole message can be its value. A text field takes no message, which may be about something
/// else, unless the form is a question in plain text.
fn only_field(form: &Form) -> Option<&FormField> {
    let [field] = form.fields.as_slice() else { return None };
    let is_free = matches!(field.field_type, FieldType::Text | FieldType::TextArea);
    (!form.is_approval() && (!is_free || field.field_name == ANSWER_FIELD)).then_some(field)
}

/// The values of the `field: value` lines of a text that name fields of the form.
fn filled(body: &str, form: &Form) -> Option<Map<String, Value>> {
    let pair = |line: &str| {
        let (key, value) = line.split_once(':')?;
        let key = key.trim().trim_start_matches("- ");
        let field = form.fields.iter().find(|field| field.field_name.eq_ignore_ascii_case(key))?;
        Some((field.field_name.clone(), Value::from(value.trim())))
    };
    let values: Map<String, Value> = body.lines().filter_map(pair).collect();
    (!values.is_empty() && !form.is_approval()).then_some(values)
}

/// The text of the sender, without the history of the thread that upstream's Slack bot puts before it.
fn own_words(body: &str) -> &str {
    let now = body.rsplit_once(CURRENT_QUESTION).map_or(body, |(_, now)| now).trim_start();
    // A mention of the bot.
    let mention = now.strip_prefix("<@").and_then(|rest| rest.split_once('>'));
    mention.map_or(now, |(_, words)| words.trim_start())
}

/// The text without the line that names its user.
fn body(text: &str) -> &str {
    text.strip_prefix("by user:").and_then(|rest| rest.split_once("\n\n")).map_or(text, |(_, body)| body)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
