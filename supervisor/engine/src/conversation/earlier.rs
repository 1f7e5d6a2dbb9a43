//! The part of a conversation that the model does not read any more: it outgrew the model's context.

use std::fmt::Write as _;
use std::sync::Arc;

use caipe_model::{Message, Part, Role, truncated};
use serde::{Deserialize, Serialize};

use crate::verification::REMINDER;

/// Most requests that the note names; the newest stay.
const MOST_REQUESTS: usize = 20;

/// Most characters of a request in the note.
const REQUEST_CHARS: usize = 200;

/// Most characters of a summary.
const SUMMARY_CHARS: usize = 12_000;

/// Most characters that a model summarizes at once.
const CONDENSED_CHARS: usize = 100_000;

/// What is known of the earlier part of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Earlier {
    /// The number of messages that were left out.
    messages: u64,
    /// Whether their text is kept as virtual files.
    is_stored: bool,
    /// The beginnings of their requests.
    requests: Vec<String>,
    /// A summary by a model.
    #[serde(skip_serializing_if = "String::is_empty")]
    summary: String,
}

impl Earlier {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Notes messages that the model does not read any more.
    pub(crate) fn left_out(&mut self, messages: &[Arc<Message>], is_stored: bool) {
        self.messages += u64::try_from(messages.len()).unwrap_or(u64::MAX);
        self.is_stored |= is_stored;
        let texts = messages.iter().filter(|message| message.role == Role::User).map(|it| it.plain_text());
        let requests = texts.filter(|text| !text.starts_with(REMINDER));
        self.requests.extend(requests.map(|text| truncated(text.trim(), REQUEST_CHARS, "…").into_owned()));
        let excess = self.requests.len().saturating_sub(MOST_REQUESTS);
        self.requests.drain(..excess);
    }

    /// Keeps a model's summary, if it has given one.
    pub(crate) fn summarized(&mut self, summary: &str) {
        if !summary.trim().is_empty() {
            self.summary = truncated(summary.trim(), SUMMARY_CHARS, "…").into_owned();
        }
    }

    /// The text that a model summarizes: the summary so far, and the newest of the messages.
    pub(crate) fn to_summarize(&self, transcript: &str) -> String {
        let newest = transcript.chars().count().saturating_sub(CONDENSED_CHARS);
        let transcript: String = transcript.chars().skip(newest).collect();
        if self.summary.is_empty() {
            return transcript;
        }
        format!("Summary of what came before:\n{}\n\nWhat came then:\n{transcript}", self.summary)
    }

    /// What the model reads instead of the messages; `None` if none was left out.
    pub fn note(&self) -> Option<String> {
        if self.messages == 0 {
            return None;
        }
        let mut note = format!(
            "[Earlier conversation] {} earlier messages of this conversation are left out here.",
            self.messages
        );
        if self.is_stored {
            note.push_str(
                " Their text is in the files of /.history: search it with grep before you say that you do not know something.",
            );
        }
        if !self.summary.is_empty() {
            let _ = write!(note, "\n\nSummary:\n{}", self.summary);
        }
        if !self.requests.is_empty() {
            note.push_str("\n\nThe requests:");
            self.requests.iter().for_each(|request| note.extend(["\n- ", request]));
        }
        Some(note)
    }
}

/// The messages as a text that a model or a person can read and search.
pub(crate) fn transcript(messages: &[Arc<Message>]) -> String {
    let mut text = String::new();
    for message in messages {
        let role = match message.role {
            Role::User => "User",
            Role::Assistant => "Agent",
            Role::Tool => "Result",
        };
        for part in &message.parts {
            match part {
                Part::Text { text: words } => text.extend([role, ": ", words, "\n\n"]),
                Part::ToolCall(call) => text.extend(["Call: ", &call.name, " ", &call.arguments, "\n\n"]),
                Part::ToolResult(result) => text.extend([role, ": ", &result.content, "\n\n"]),
                Part::Reasoning { .. } | Part::Provider { .. } => {}
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, text: &str) -> Arc<Message> {
        Arc::new(Message::text(role, text))
    }

    #[test]
    fn the_note_names_the_requests_and_the_newest_summary() {
        let mut earlier = Earlier::default();
        assert_eq!(earlier.note(), None);
        for at in 0..30 {
            let messages =
                [message(Role::User, &format!("request {at}")), message(Role::Assistant, "answer")];
            earlier.left_out(&messages, true);
        }
        earlier.summarized("The cluster is blue.");
        earlier.summarized(" ");
        let note = earlier.note().unwrap();
        assert!(note.starts_with("[Earlier conversation] 60 earlier messages"), "{note}");
        assert!(note.contains("The cluster is blue.") && note.contains("/.history"), "{note}");
        assert!(note.contains("request 10") && note.ends_with("request 29") && !note.contains("request 9\n"));
        assert!(earlier.to_summarize("User: x").contains("The cluster is blue."));
    }
}
