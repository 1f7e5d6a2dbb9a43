//! The budgets that tools share. The model reads what is left when most of one is used. A call beyond it is answered with a text.

use crate::budget::LimitKind;
use crate::conversation;
use crate::effects::Effects;
use crate::event::{Emit, EventKind};
use crate::state::{CallStatus, RunState};
use crate::tool_budget::{ToolBudget, ToolSpent};

use super::limit::{CAPPED, Limit, OVER_BUDGET, money, number};

/// Most tools that a note names.
const MOST_NAMES: usize = 5;

/// Counts a call against the budget of its tool. If the budget does not cover it, returns the result of the call.
pub(super) fn spend(state: &mut RunState, tool: &str, out: &mut Effects) -> Option<String> {
    let (key, budget) = budget_of(state, tool)?;
    let spent = state.counters.budgets.entry(key).or_default();
    let Some(limit) = reached(&budget, spent) else {
        spent.calls += 1;
        spent.cost = spent.cost.saturating_add(budget.price);
        return None;
    };
    let text = format!("the budget of {} {tool} is used up", limit.whole());
    if !std::mem::replace(&mut spent.reported, true) {
        out.emit(EventKind::Limited { limit: limit.kind, text: text.clone() });
    }
    let is_knowledge = state.abilities.traits_of(tool).is_knowledge;
    Some(match limit.kind {
        LimitKind::ToolCalls => cap_text(tool, limit.most, is_knowledge),
        _ => format!(
            "{OVER_BUDGET} The call was not made: {text}. Continue with the results above, or with other tools. Do NOT call \
             {tool} again."
        ),
    })
}

/// What the model reads instead of the result of a call above the number of calls.
fn cap_text(tool: &str, most: u64, is_knowledge: bool) -> String {
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

/// Counts the result of a call, and how long the call took.
pub(super) fn count_result(state: &mut RunState, id: &str, time_ms: u64) {
    let Some(call) = state.calls.iter().find(|call| call.id == id) else { return };
    let (CallStatus::Done { result, .. }, Some((key, _))) = (&call.status, budget_of(state, &call.name))
    else {
        return;
    };
    let tokens = conversation::text_tokens(&result.content);
    let spent = state.counters.budgets.entry(key).or_default();
    spent.tokens = spent.tokens.saturating_add(tokens);
    spent.time_ms = spent.time_ms.saturating_add(time_ms);
}

/// What a call of a tool costs, in picodollars.
pub(super) fn price(state: &RunState, tool: &str) -> u64 {
    let key = state.abilities.traits_of(tool).budget.as_ref();
    key.and_then(|key| state.abilities.budget.tools.get(key)).map_or(0, |budget| budget.price)
}

/// Whether the budget of a tool does not cover another call.
pub(super) fn is_used_up(state: &RunState, tool: &str) -> bool {
    budget_of(state, tool).is_some_and(|(key, budget)| {
        state.counters.budgets.get(&key).is_some_and(|spent| reached(&budget, spent).is_some())
    })
}

/// What is left of the budgets of which most is used, a note each. Each is noted once. The calls of a knowledge base are left
/// out: their caps have texts of their own.
pub(super) fn notes(state: &mut RunState) -> Vec<String> {
    let (abilities, counters) = (&state.abilities, &mut state.counters);
    let mut notes = Vec::new();
    for (key, spent) in counters.budgets.iter_mut().filter(|(_, spent)| !spent.warned) {
        let Some(budget) = abilities.budget.tools.get(key) else { continue };
        let shares = abilities.traits.iter().filter(|(_, traits)| traits.budget.as_ref() == Some(key));
        let mut tools =
            shares.clone().map(|(tool, _)| tool.as_str()).take(MOST_NAMES).collect::<Vec<_>>().join(", ");
        let is_knowledge = shares.clone().any(|(_, traits)| traits.is_knowledge);
        let counted: Vec<Limit> = limits(budget, spent)
            .filter(|limit| limit.kind != LimitKind::ToolCalls || !is_knowledge)
            .collect();
        if !counted.iter().any(Limit::is_near) {
            continue;
        }
        spent.warned = true;
        if shares.count() > MOST_NAMES {
            tools.push_str(", …");
        }
        let left: Vec<String> = counted.iter().map(|limit| format!("{} {tools}", limit.left())).collect();
        notes.push(format!(
            "[Budget] Left for this request: {}. Do what matters most with it.",
            left.join(", ")
        ));
    }
    notes
}

/// The budget that a tool's calls count against, by its key.
fn budget_of(state: &RunState, tool: &str) -> Option<(String, ToolBudget)> {
    let key = state.abilities.traits_of(tool).budget.as_ref()?;
    state.abilities.budget.tools.get(key).map(|budget| (key.clone(), *budget))
}

/// The limit that does not cover another call.
fn reached(budget: &ToolBudget, spent: &ToolSpent) -> Option<Limit> {
    let does_not_cover = |limit: &Limit| match limit.kind {
        LimitKind::ToolCost => limit.used.saturating_add(budget.price) > limit.most,
        _ => limit.used >= limit.most,
    };
    limits(budget, spent).find(does_not_cover)
}

fn limits(budget: &ToolBudget, spent: &ToolSpent) -> impl Iterator<Item = Limit> {
    let limits = [
        Limit::new(LimitKind::ToolCalls, budget.calls, spent.calls, number, " calls of"),
        Limit::new(LimitKind::ToolTokens, budget.tokens, spent.tokens, number, " tokens for results of"),
        Limit::new(LimitKind::ToolCost, budget.cost, spent.cost, money, " for calls of"),
        Limit::new(LimitKind::ToolTime, budget.time_ms, spent.time_ms, seconds, " seconds for calls of"),
    ];
    limits.into_iter().flatten()
}

/// Milliseconds as seconds, for example `1.5`.
fn seconds(milliseconds: u64) -> String {
    match (milliseconds / 1000, milliseconds % 1000 / 100) {
        (whole, 0) => whole.to_string(),
        (whole, tenths) => format!("{whole}.{tenths}"),
    }
}
