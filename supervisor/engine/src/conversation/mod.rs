//! The conversation as the model reads it: complete, and not too long.

mod earlier;
mod repair;
mod trim;

use std::sync::Arc;

use caipe_model::{Message, Part, Role, truncated};

use crate::verification::REMINDER;

pub use earlier::Earlier;
pub(crate) use earlier::transcript;
pub(crate) use repair::{interrupted, repair};
pub(crate) use trim::{TRUNCATED, shrink, text_tokens, trim};

/// A conversation, oldest message first.
pub(crate) type Messages = Vec<Arc<Message>>;

/// The beginning of the note that asks for a last answer after an error.
const RECOVERY: &str = "[Recovery after error: ";

/// The note that asks the model for its last answer.
const LAST_ANSWER: &str = "You have finished gathering information. Based ONLY on what was retrieved above, write your final \
                         answer now. Do not call any more tools.";

/// Most characters of an error in the note.
const CAUSE_CHARS: usize = 200;

/// The note that asks the model for its last answer.
pub(crate) fn last_answer_note(cause: Option<&str>) -> Arc<Message> {
    let cause =
        cause.map_or_else(String::new, |cause| format!("{RECOVERY}{}] ", truncated(cause, CAUSE_CHARS, "")));
    Arc::new(Message::text(Role::User, cause + LAST_ANSWER))
}

/// Appends a note for the model to the newest results of its calls. Does nothing if the model has called nothing.
pub(crate) fn append_note(messages: &mut Messages, note: &str) {
    let newest = messages.last_mut().filter(|message| message.role == Role::Tool);
    if let Some(Part::ToolResult(result)) = newest.and_then(|newest| Arc::make_mut(newest).parts.last_mut()) {
        result.content.push_str("\n\n");
        result.content.push_str(note);
    }
}

/// Removes the note, which would forbid tools in later turns.
pub(crate) fn remove_last_answer_note(messages: &mut Messages) {
    messages.retain(|message| !is_last_answer_note(message));
}

fn is_last_answer_note(message: &Message) -> bool {
    message.role == Role::User
        && matches!(message.parts.as_slice(), [Part::Text { text }] if text.ends_with(LAST_ANSWER)
            && (text.starts_with(RECOVERY) || text == LAST_ANSWER))
}

/// Replaces the arguments of calls that a person edited, so that the model reads the arguments of the actual call.
pub(crate) fn edit_calls(messages: &mut Messages, edited: Vec<(String, String)>) {
    for (id, arguments) in edited {
        let asking = messages.iter_mut().rev().find(|message| message.tool_calls().any(|call| call.id == id));
        for part in asking.into_iter().flat_map(|message| &mut Arc::make_mut(message).parts) {
            match part {
                Part::ToolCall(call) if call.id == id => call.arguments.clone_from(&arguments),
                _ => {}
            }
        }
    }
}

/// The index of the request that began the run.
fn request_index(messages: &[Arc<Message>]) -> Option<usize> {
    messages.iter().rposition(|message| {
        message.role == Role::User && !is_last_answer_note(message) && !is_reminder(message)
    })
}

/// Whether the engine has sent the message instead of ending the run.
fn is_reminder(message: &Message) -> bool {
    matches!(message.parts.as_slice(), [Part::Text { text }] if text.starts_with(REMINDER))
}

/// Whether a call of the run has succeeded.
pub(crate) fn has_results(messages: &Messages) -> bool {
    let from = request_index(messages).map_or(0, |at| at + 1);
    let mut parts = messages.iter().skip(from).flat_map(|message| &message.parts);
    parts.any(|part| matches!(part, Part::ToolResult(result) if !result.is_error))
}
