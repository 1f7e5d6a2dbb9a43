//! The budgets of a run. A call that a budget does not cover is answered with a text for the model; a model that goes on
//! calling gets one more turn, and then must answer without tools.

use std::sync::Arc;

use caipe_model::{Message, ToolCall, ToolResult};
use serde_json::{Map, Value};

use crate::abilities::Abilities;
use crate::budget::LimitKind;
use crate::effects::Effects;
use crate::event::{Emit, EventKind};
use crate::state::RunState;

use super::finish::Cause;
use super::model_request;

/// The result of each call of a turn whose calls are all used up, after the model has read the reason once.
const USED_UP: &str = "RAG budget exhausted. Synthesize your answer from what was already retrieved.";

/// The same for other tools.
const OTHERS_USED_UP: &str = "Budget exhausted. Write your answer from the results above.";

/// Counts a call against the budget of its tool. If the budget is used up, returns the result of the call. It reads as a
/// success, because a model tries again after an error.
pub(super) fn spend(state: &mut RunState, tool: &str, out: &mut Effects) -> Option<String> {
    let (key, most) = budget_of(state, tool)?;
    let used = state.counters.budgets.entry(key).or_default();
    if *used < most {
        *used += 1;
        return None;
    }
    // Reported once: the counter of a reported budget is above it.
    if std::mem::replace(used, most + 1) == most {
        let text = format!("the budget of {most} calls of {tool} is used up");
        out.emit(EventKind::Limited { limit: LimitKind::ToolCalls, text });
    }
    Some(used_up(tool, most, state.abilities.traits_of(tool).is_knowledge))
}

/// What the model reads instead of the result.
fn used_up(tool: &str, most: u32, is_knowledge: bool) -> String {
    if is_knowledge {
        format!(
            "[Document already retrieved] You have reached the maximum allowed number of {tool} calls ({most}). Please synthesize \
             your answer from the documents already retrieved. Do NOT call {tool} again."
        )
    } else {
        format!(
            "[Budget used up] You have reached the maximum allowed number of {tool} calls ({most}). Continue with the results \
             above, or with other tools. Do NOT call {tool} again."
        )
    }
}

/// The budget that a tool's calls count against, and its number of calls.
fn budget_of(state: &RunState, tool: &str) -> Option<(String, u32)> {
    let key = state.abilities.traits_of(tool).budget.as_ref()?;
    state.abilities.budget.tools.get(key).map(|most| (key.clone(), *most))
}

/// Lowers the argument `limit` of a search to the most results, and sets it where it is missing.
pub(super) fn bound_results(abilities: &Abilities, tool: &str, arguments: &mut Map<String, Value>) {
    let Some(most) = abilities.traits_of(tool).results else { return };
    let fits = |limit: &Value| limit.as_u64().is_some_and(|limit| (1..=u64::from(most)).contains(&limit));
    if !arguments.get("limit").is_some_and(fits) {
        arguments.insert("limit".to_owned(), most.into());
    }
}

/// Whether the turn calls only tools whose budgets are used up, although the model has read so. Notes it the first time.
pub(super) fn must_answer(state: &mut RunState, requests: &[ToolCall]) -> bool {
    let is_used_up = |call: &ToolCall| {
        budget_of(state, &call.name)
            .is_some_and(|(key, most)| state.counters.budgets.get(&key).is_some_and(|used| *used >= most))
    };
    let all = requests.iter().all(is_used_up);
    all && std::mem::replace(&mut state.guards.used_up, true)
}

/// Answers the calls of a turn without running them, and asks for the answer.
pub(super) fn end_turn(state: &mut RunState, requests: &[ToolCall], out: &mut Effects) {
    let result = |call: &ToolCall| {
        let is_knowledge = state.abilities.traits_of(&call.name).is_knowledge;
        let content = if is_knowledge { USED_UP } else { OTHERS_USED_UP }.to_owned();
        ToolResult { call_id: call.id.clone(), content, is_error: false }
    };
    let results: Vec<ToolResult> = requests.iter().map(result).collect();
    state.messages.push(Arc::new(Message::results(results)));
    state.text.retract_answer(out);
    model_request::ask_for_last_answer(state, None, Cause::Budget, out);
}
