//! The conversation as a model gets to read it: whole, and not too long.

mod repair;
mod trim;

use std::sync::Arc;

use caipe_model::{Message, Part, Role};

pub(crate) use repair::{interrupted, repair};
pub(crate) use trim::{TRUNCATED, shrink, trim};

/// A conversation, oldest message first.
pub(crate) type Messages = Vec<Arc<Message>>;

/// How the note begins that asks for a last answer after an error.
const RECOVERY: &str = "[Recovery after error: ";

/// The message that asks the model to answer from what it has.
const LAST_WORD: &str = "You have finished gathering information. Based ONLY on what was retrieved above, write your final \
                         answer now. Do not call any more tools.";

/// Most characters of an error in that message.
const CAUSE_CHARS: usize = 200;

/// The note that asks the model for its last answer.
pub(crate) fn last_word(cause: Option<&str>) -> Arc<Message> {
    let cause: String = cause.map_or_else(String::new, |cause| {
        let cause: String = cause.chars().take(CAUSE_CHARS).collect();
        format!("{RECOVERY}{cause}] ")
    });
    Arc::new(Message::text(Role::User, cause + LAST_WORD))
}

/// Takes the note back: it was meant for one turn, and would forbid tools for ever.
pub(crate) fn withdraw_last_word(messages: &mut Messages) {
    messages.retain(|message| !is_last_word(message));
}

fn is_last_word(message: &Message) -> bool {
    message.role == Role::User
        && matches!(message.parts.as_slice(), [Part::Text { text }] if text.ends_with(LAST_WORD)
            && (text.starts_with(RECOVERY) || text == LAST_WORD))
}

/// Puts a human's arguments in place of the model's, so that it reads what was really run.
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

/// The messages since the request that the run is about.
fn of_run(messages: &Messages) -> impl Iterator<Item = &Arc<Message>> {
    let from = request(messages).map_or(0, |at| at + 1);
    messages.iter().skip(from)
}

/// Where the request stands that the run is about.
fn request(messages: &[Arc<Message>]) -> Option<usize> {
    messages.iter().rposition(|message| message.role == Role::User && !is_last_word(message))
}

/// Whether the run has brought any result that a model could answer from.
pub(crate) fn has_results(messages: &Messages) -> bool {
    let mut parts = of_run(messages).flat_map(|message| &message.parts);
    parts.any(|part| matches!(part, Part::ToolResult(result) if !result.is_error))
}
