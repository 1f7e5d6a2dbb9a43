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

/// The result of each call of a turn whose calls are all used up, after the model has read the reason once.
const USED_UP: &str = "RAG budget exhausted. Synthesize your answer from what was already retrieved.";

/// The same for other tools.
const OTHERS_USED_UP: &str = "Budget exhausted. Write your answer from the results above.";

/// The beginnings of the results of calls that are not run.
const CAPPED: &str = "[Document already retrieved]";
const OVER_BUDGET: &str = "[Budget used up]";
pub(super) const NOT_RUN: &str = "[Not run]";

/// Whether a result only says that its call was not run.
pub(super) fn is_limit(result: &str) -> bool {
    [CAPPED, OVER_BUDGET, NOT_RUN].iter().any(|start| result.starts_with(start))
}

/// The part of a budget that may be used before the model reads how much is left, in percent.
const WARN_AT: u64 = 80;

/// Picodollars of a cent.
const CENT: u64 = 10_000_000_000;

/// Counts a call against the budgets of its run and its tool. If one is used up, returns the result of the call. It reads as
/// a success, because a model tries again after an error.
pub(super) fn spend(state: &mut RunState, tool: &str, out: &mut Effects) -> Option<String> {
    if state.abilities.budget.calls.is_some_and(|most| state.counters.spent.calls >= most) {
        return Some(format!("{OVER_BUDGET} The call was not made. Answer from the results above."));
    }
    let used_up = spend_of_tool(state, tool, out);
    state.counters.spent.calls += u64::from(used_up.is_none());
    used_up
}

fn spend_of_tool(state: &mut RunState, tool: &str, out: &mut Effects) -> Option<String> {
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
    Some(cap_text(tool, most, state.abilities.traits_of(tool).is_knowledge))
}

/// What the model reads instead of the result.
fn cap_text(tool: &str, most: u32, is_knowledge: bool) -> String {
    if is_knowledge {
        format!(
            "{CAPPED} You have reached the maximum allowed number of {tool} calls ({most}). Please synthesize \
             your answer from the documents already retrieved. Do NOT call {tool} again."
        )
    } else {
        format!(
            "{OVER_BUDGET} You have reached the maximum allowed number of {tool} calls ({most}). Continue with the results \
             above, or with other tools. Do NOT call {tool} again."
        )
    }
}

/// The budget that a tool's calls count against, and its number of calls.
fn budget_of(state: &RunState, tool: &str) -> Option<(String, u32)> {
    let key = state.abilities.traits_of(tool).budget.as_ref()?;
    state.abilities.budget.tools.get(key).map(|most| (key.clone(), *most))
}

/// A limit of a run: what it limits, its size, how much of it is used, and how an amount is written.
struct RunLimit {
    kind: LimitKind,
    most: u64,
    used: u64,
    amount: fn(u64) -> String,
    unit: &'static str,
}

fn run_limits(state: &RunState) -> impl Iterator<Item = RunLimit> {
    let (budget, spent) = (&state.abilities.budget, state.counters.spent);
    let limit = |kind, most: Option<u64>, used, amount: fn(u64) -> String, unit| {
        most.map(|most| RunLimit { kind, most, used, amount, unit })
    };
    let number = |amount: u64| amount.to_string();
    let money = |amount: u64| format!("USD {}.{:02}", amount / (100 * CENT), amount / CENT % 100);
    let limits = [
        limit(LimitKind::Calls, budget.calls, spent.calls, number, " calls"),
        limit(LimitKind::Tokens, budget.tokens, spent.tokens, number, " tokens"),
        limit(LimitKind::Cost, budget.cost, spent.cost, money, ""),
    ];
    limits.into_iter().flatten()
}

/// The limit of the run that is reached, with the reason for people.
pub(super) fn used_up(state: &RunState) -> Option<(LimitKind, String)> {
    let reached = run_limits(state).find(|limit| limit.used >= limit.most)?;
    let (most, unit) = ((reached.amount)(reached.most), reached.unit);
    Some((reached.kind, format!("the budget of {most}{unit} for this request is used up")))
}

/// Tells the model once what is left, when most of a budget is used.
pub(super) fn warn(state: &mut RunState) {
    let is_near = |limit: &RunLimit| limit.used >= limit.most.saturating_mul(WARN_AT) / 100;
    if let Some(note) = state.guards.note.take() {
        conversation::append_note(&mut state.messages, &note);
    }
    if state.guards.warned || !run_limits(state).any(|limit| is_near(&limit)) {
        return;
    }
    state.guards.warned = true;
    let left = |RunLimit { most, used, amount, unit, .. }: RunLimit| {
        format!("{} of {}{unit}", amount(most.saturating_sub(used)), amount(most))
    };
    let left: Vec<String> = run_limits(state).map(left).collect();
    let note = format!(
        "[Budget] Left for this request: {}. Do what matters most with it, then answer.",
        left.join(", ")
    );
    conversation::append_note(&mut state.messages, &note);
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
    let is_used_up = |call: &ToolCall| {
        budget_of(state, &call.name)
            .is_some_and(|(key, most)| state.counters.budgets.get(&key).is_some_and(|used| *used >= most))
    };
    let all = requests.iter().all(is_used_up);
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
