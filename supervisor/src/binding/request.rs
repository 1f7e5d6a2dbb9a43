//! What a client's message asks for: a new question, or the answer to one of ours.

use caipe_a2a::model::{Content, Message as A2aMessage, Metadata};
use caipe_engine::{ANSWER_FIELD, Decision, Form};
use caipe_model::{Message, Role};
use serde_json::{Map, Value};

use super::decision::{self, Sent};
use super::{ACTIVITY_EXTENSION, answer};

/// The member of a message's metadata in which a supervisor names the tools that a human must approve.
pub const REQUIRE_APPROVAL: &str = "require_approval";

/// What upstream's Slack bot writes between the history of a thread and the message.
const CURRENT_QUESTION: &str = "Current question: ";

/// Most patterns that are read of it.
const MOST_PATTERNS: usize = 1000;

/// A client's message, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The user's e-mail address, where the client gives it.
    pub user: Option<String>,
    /// The trace that the client wants this to belong to.
    pub trace_id: Option<String>,
    /// Tools that a human must approve whatever this process says itself: the delegating supervisor demands it.
    pub require_approval: Vec<String>,
    /// Whether the client wants to read the words of agents (the extension [`ACTIVITY_EXTENSION`]).
    pub agents_words: bool,
    text: String,
    decisions: Vec<Sent>,
}

/// What a message is to the run.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Something said.
    Message(Message),
    /// Answers to what was asked: one for each call that waits, in order.
    Decisions(Vec<Decision>),
    /// An answer to what was asked that is not clear; why, for people.
    Unclear(String),
}

impl Request {
    /// Reads a message.
    ///
    /// # Errors
    /// A located message when it says nothing that can be read.
    pub fn read(message: &A2aMessage) -> Result<Self, String> {
        let decisions = decision::sent(message)?;
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
        Ok(Self {
            user,
            trace_id,
            require_approval: require_approval(metadata),
            agents_words: message.extensions.iter().any(|uri| uri == ACTIVITY_EXTENSION),
            text,
            decisions,
        })
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
        let decided = match self.decisions.as_slice() {
            [] => spoken(&self.text, questions, addressed),
            sent => Some(decision::matched(sent, questions)),
        };
        match decided {
            Some(Ok(decisions)) => Reply::Decisions(decisions),
            Some(Err(reason)) => Reply::Unclear(reason),
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

/// The patterns under `require_approval` in the metadata; only more can be demanded by them.
fn require_approval(metadata: Option<&Metadata>) -> Vec<String> {
    let patterns = metadata.and_then(|metadata| metadata.get(REQUIRE_APPROVAL)?.as_array());
    let patterns = patterns.into_iter().flatten().filter_map(Value::as_str);
    patterns.take(MOST_PATTERNS).map(str::to_owned).collect()
}

/// A decision in words, as a client without forms sends it: a plain yes or no for an approval, `field: value` lines for a
/// form. Words count only where exactly one question waits. Lines count wherever they stand in the text, because a
/// client may put what a person wrote into a template; other lines may be the next question.
fn spoken(text: &str, questions: &[&Form], addressed: bool) -> Option<Result<Vec<Decision>, String>> {
    let body = own_words(body(text));
    let is_verdict = || decision::is_verdict(body);
    let [question] = questions else {
        let meant = is_verdict() || questions.iter().any(|form| filled(body, form).is_some());
        return meant.then(|| Err(decision::several(questions)));
    };
    if question.is_approval() {
        let decided = decision::spoken(body, question).map(Ok);
        return decided.or_else(|| is_verdict().then(|| Err(decision::several(questions))));
    }
    if addressed && answer::takes_any_text(question) {
        let values = Map::from_iter([(ANSWER_FIELD.to_owned(), Value::from(body.trim()))]);
        return Some(Ok(vec![Decision::Submit { values }]));
    }
    filled(body, question).map(|values| Ok(vec![Decision::Submit { values }]))
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

/// What the sender says now: upstream's Slack bot puts a thread's history, which others wrote, before it.
fn own_words(body: &str) -> &str {
    let now = body.rsplit_once(CURRENT_QUESTION).map_or(body, |(_, now)| now).trim_start();
    // A mention of the bot.
    let mention = now.strip_prefix("<@").and_then(|rest| rest.split_once('>'));
    mention.map_or(now, |(_, words)| words.trim_start())
}

/// The text without the line that says who wrote it.
fn body(text: &str) -> &str {
    text.strip_prefix("by user:").and_then(|rest| rest.split_once("\n\n")).map_or(text, |(_, body)| body)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
