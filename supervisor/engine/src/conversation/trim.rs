//! Keeps the conversation within the model's context.

use std::ops::Range;
use std::sync::Arc;

use caipe_model::{Message, Part, Role, truncated};

use super::{Messages, request_index};

/// The estimated bytes of a token. Bytes, because characters beyond ASCII also cost more tokens.
const TOKEN_BYTES: u64 = 4;

/// The tokens of a message besides its text.
const MESSAGE_TOKENS: u64 = 4;

/// Most characters that [`shrink`] leaves of a tool result.
const SHRUNK_CHARS: usize = 4000;

/// The end of a truncated result.
pub(crate) const TRUNCATED: &str = "\n\n[Output truncated]";

/// If the conversation has more than `most` tokens, drops its oldest messages until it has at most `target`. Keeps the
/// newest `keep` messages, the request that began the run, and each call together with its results. A target well below
/// the limit keeps the rest stable for the provider's prompt cache.
///
/// Returns what was dropped.
pub(crate) fn trim(messages: &mut Messages, most: u64, target: u64, keep: usize) -> Messages {
    let total: u64 = messages.iter().map(|message| tokens(message)).sum();
    if total <= most {
        return Vec::new();
    }
    let mut excess = total.saturating_sub(target);
    let tail = messages.len().saturating_sub(keep);
    let request = request_index(messages);
    let head = drop_head(messages, request.unwrap_or(0).min(tail), &mut excess);
    let old = drop_old(messages, request.map_or(0, |at| at + 1), tail, &mut excess);
    let mut dropped: Messages = messages.drain(old.start.max(head.end)..old.end.max(head.end)).collect();
    dropped.splice(0..0, messages.drain(head));
    dropped
}

/// The messages to drop before the request: whole exchanges, because providers want a user's message first.
fn drop_head(messages: &[Arc<Message>], before: usize, excess: &mut u64) -> Range<usize> {
    let starts =
        (0..=before).filter(|at| messages.get(*at).is_some_and(|message| message.role == Role::User));
    let mut end = 0;
    for start in starts {
        *excess = excess.saturating_sub(sum(messages, end..start));
        end = start;
        if *excess == 0 {
            break;
        }
    }
    0..end
}

/// The messages to drop after the request.
fn drop_old(messages: &[Arc<Message>], from: usize, tail: usize, excess: &mut u64) -> Range<usize> {
    let mut end = from;
    for group in groups(messages).into_iter().filter(|group| group.start >= from && group.end <= tail) {
        if *excess == 0 {
            break;
        }
        end = group.end;
        *excess = excess.saturating_sub(sum(messages, group));
    }
    from..end
}

fn sum(messages: &[Arc<Message>], range: Range<usize>) -> u64 {
    messages.get(range).unwrap_or_default().iter().map(|message| tokens(message)).sum()
}

/// Shortens a conversation that the model rejected as too long: trims it to `target` tokens with [`trim`], except the last
/// message, and truncates long results. Returns what was dropped, and whether anything was shortened.
pub(crate) fn shrink(messages: &mut Messages, target: u64) -> (Messages, bool) {
    let dropped = trim(messages, target, target, 1);
    let mut cut = false;
    for message in messages.iter_mut().filter(|message| message.parts.iter().any(is_long)) {
        for part in &mut Arc::make_mut(message).parts {
            if let Part::ToolResult(result) = part {
                result.content = truncated(&result.content, SHRUNK_CHARS, TRUNCATED).into_owned();
                cut = true;
            }
        }
    }
    let is_shorter = cut || !dropped.is_empty();
    (dropped, is_shorter)
}

fn is_long(part: &Part) -> bool {
    // The end of a truncated result must not make it long again.
    matches!(part, Part::ToolResult(result) if result.content.len() > SHRUNK_CHARS + 2 * TRUNCATED.len()
        && result.content.chars().count() > SHRUNK_CHARS + 2 * TRUNCATED.len())
}

/// About how many tokens a message has.
fn tokens(message: &Message) -> u64 {
    let bytes: usize = message.parts.iter().map(part_bytes).sum();
    MESSAGE_TOKENS + u64::try_from(bytes).unwrap_or(u64::MAX) / TOKEN_BYTES
}

/// About how many tokens a text has.
pub(crate) fn text_tokens(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX).div_ceil(TOKEN_BYTES)
}

fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text { text } => text.len(),
        Part::Reasoning { text, signature } => text.len() + signature.as_ref().map_or(0, String::len),
        Part::ToolCall(call) => call.name.len() + call.arguments.len(),
        Part::ToolResult(result) => result.content.len(),
        Part::Provider { block, .. } => block.to_string().len(),
    }
}

/// The ranges of messages that must stay together: a message and the results after it.
fn groups(messages: &[Arc<Message>]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match groups.last_mut() {
            Some(group) if message.role == Role::Tool => group.end = at + 1,
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

#[cfg(test)]
#[path = "trim_tests.rs"]
mod tests;
