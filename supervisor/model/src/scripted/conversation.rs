//! The view of a conversation that scripts match and templates read.

use std::fmt;

use serde::Serialize;

use crate::chat::ChatRequest;
use crate::message::{Message, Part, Role};
use crate::text::truncated;

/// Most characters of a text in an error message.
const SHOWN_CHARS: usize = 120;

/// The parts of a request that turns match.
pub(super) struct View<'a> {
    pub(super) system: &'a str,
    /// The last user message.
    pub(super) user: String,
    /// Assistant messages since the last user message.
    pub(super) turn: u32,
    /// Tool results since the last user message.
    pub(super) results: Vec<ResultView<'a>>,
    /// All messages, oldest first.
    pub(super) messages: Vec<&'a Message>,
}

/// A tool's result and name.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ResultView<'a> {
    pub(super) tool: &'a str,
    pub(super) call_id: &'a str,
    pub(super) content: &'a str,
    pub(super) is_error: bool,
}

impl<'a> View<'a> {
    pub(super) fn of(request: &'a ChatRequest) -> Self {
        let messages: Vec<&Message> = request.messages.iter().map(AsRef::as_ref).collect();
        let last_user = messages.iter().rposition(|message| message.role == Role::User);
        let run = messages.get(last_user.map_or(0, |at| at + 1)..).unwrap_or_default();
        let turn = run.iter().filter(|message| message.role == Role::Assistant).count();
        let user = last_user.and_then(|at| messages.get(at)).map(|message| message.plain_text());
        Self {
            system: &request.system,
            user: user.unwrap_or_default(),
            turn: u32::try_from(turn).unwrap_or(u32::MAX),
            results: results(run),
            messages,
        }
    }

    /// The agent that the system prompt's `Agent: NAME` line names.
    pub(super) fn agent(&self) -> Option<&'a str> {
        self.system.lines().find_map(agent_line)
    }

    /// The number of tool calls in the conversation, for unique ids.
    pub(super) fn calls_so_far(&self) -> usize {
        self.messages.iter().map(|message| message.tool_calls().count()).sum()
    }
}

fn agent_line(line: &str) -> Option<&str> {
    let (key, name) = line.split_once(':')?;
    let name = name.trim();
    (key.trim().eq_ignore_ascii_case("agent") && !name.is_empty()).then_some(name)
}

fn results<'a>(run: &[&'a Message]) -> Vec<ResultView<'a>> {
    let calls: Vec<_> = run.iter().flat_map(|message| message.tool_calls()).collect();
    let parts = run.iter().flat_map(|message| &message.parts);
    let results =
        parts.filter_map(|part| if let Part::ToolResult(result) = part { Some(result) } else { None });
    results
        .map(|result| ResultView {
            tool: calls.iter().rev().find(|call| call.id == result.call_id).map_or("", |call| &call.name),
            call_id: &result.call_id,
            content: &result.content,
            is_error: result.is_error,
        })
        .collect()
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "agent {:?}, user {:?}, turn {}",
            self.agent().unwrap_or("(no `Agent:` line)"),
            truncated(&self.user, SHOWN_CHARS, ""),
            self.turn
        )?;
        match self.results.last() {
            Some(last) => {
                write!(f, ", last result {:?} of {}", truncated(last.content, SHOWN_CHARS, ""), last.tool)
            }
            None => write!(f, ", no tool result"),
        }
    }
}
