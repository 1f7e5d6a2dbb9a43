//! The budgets of a run. A call that a budget does not cover is answered with a text for the model; a model that continues
//! to call gets one more turn, and then must answer without tools.

use std::sync::Arc;

use caipe_model::{Message, ToolCall, ToolResult};
use serde_json::{Map, Value};

use crate::abilities::Abilities;
use crate::budget::LimitKind;
use crate::conversation;
use crate::effects::Effects;
use crate::event::{Emit, EventKind};
use crate::state::{Phase, RunState};

use super::limit::{Limit, OVER_BUDGET, money, number};
use super::tool_limits;

/// The result of each call of a turn whose calls are all used up, after the model has read the reason once.
const USED_UP: &str = "RAG budget exhausted. Synthesize your answer from what was already retrieved.";

/// The same for other tools.
const OTHERS_USED_UP: &str = "Budget exhausted. Write your answer from the results above.";

/// Counts a call against the budgets of its run and its tool. If one is used up, returns the result of the call. It reads as
/// a success, because a model tries again after an error.
pub(super) fn spend(state: &mut RunState, tool: &str, out: &mut Effects) -> Option<String> {
    let price = tool_limits::price(state, tool);
    let (budget, spent) = (&state.abilities.budget, &state.counters.spent);
    let is_over = budget.calls.is_some_and(|most| spent.calls >= most)
        || budget.cost.is_some_and(|most| spent.cost.saturating_add(price) > most);
    if is_over {
        return Some(format!("{OVER_BUDGET} The call was not made. Answer from the results above."));
    }
    let used_up = tool_limits::spend(state, tool, out);
    if used_up.is_none() {
        let spent = &mut state.counters.spent;
        spent.calls += 1;
        spent.cost = spent.cost.saturating_add(price);
    }
    used_up
}

fn run_limits(state: &RunState) -> impl Iterator<Item = Limit> {
    let (budget, spent) = (&state.abilities.budget, state.counters.spent);
    let limits = [
        Limit::new(LimitKind::Calls, budget.calls, spent.calls, number, " calls"),
        Limit::new(LimitKind::Tokens, budget.tokens, spent.tokens, number, " tokens"),
        Limit::new(LimitKind::Cost, budget.cost, spent.cost, money, ""),
    ];
    limits.into_iter().flatten()
}

/// The limit of the run that is reached, with the reason for people.
pub(super) fn used_up(state: &RunState) -> Option<(LimitKind, String)> {
    let reached = run_limits(state).find(|limit| limit.used >= limit.most)?;
    Some((reached.kind, format!("the budget of {} for this request is used up", reached.whole())))
}

/// Tells the model once what is left, when most of a budget is used.
pub(super) fn warn(state: &mut RunState) {
    let mut notes: Vec<String> = state.guards.note.take().into_iter().collect();
    notes.extend(tool_limits::notes(state));
    if !state.guards.warned && run_limits(state).any(|limit| limit.is_near()) {
        state.guards.warned = true;
        let left: Vec<String> = run_limits(state).map(|limit| limit.left()).collect();
        notes.push(format!(
            "[Budget] Left for this request: {}. Do what matters most with it, then answer.",
            left.join(", ")
        ));
    }
    for note in notes {
        conversation::append_note(&mut state.messages, &note);
    }
}

/// Tells the model that little time is left; it reads so with the next results.
pub(super) fn time_left(state: &mut RunState, seconds: u64) {
    if state.phase != Phase::Idle {
        let note = format!(
            "[Budget] {seconds} seconds are left for this request. Do what matters most, then answer."
        );
        state.guards.note = Some(note);
    }
}

/// Emits that a limit ends the run, and keeps the reason for the answer.
pub(super) fn report(state: &mut RunState, limit: LimitKind, reason: &str, out: &mut Effects) {
    if state.guards.stopped.is_none() {
        out.emit(EventKind::Limited { limit, text: reason.to_owned() });
        state.guards.stopped = Some(reason.to_owned());
    }
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
    let all = requests.iter().all(|call| tool_limits::is_used_up(state, &call.name));
    all && std::mem::replace(&mut state.guards.used_up, true)
}

/// Answers the calls of a turn without running them.
pub(super) fn refuse_all(state: &mut RunState, requests: &[ToolCall]) {
    let result = |call: &ToolCall| {
        let is_knowledge = state.abilities.traits_of(&call.name).is_knowledge;
        let content = if is_knowledge { USED_UP } else { OTHERS_USED_UP }.to_owned();
        ToolResult { call_id: call.id.clone(), content, is_error: false }
    };
    let results: Vec<ToolResult> = requests.iter().map(result).collect();
    state.messages.push(Arc::new(Message::results(results)));
}
