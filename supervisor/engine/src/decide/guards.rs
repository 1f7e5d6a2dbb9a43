//! Guards against runs that make no progress: equal calls, equal errors, two calls that alternate, empty turns, a plan that
//! does not change. The model is first reminded in a result, then such calls are not run, then the run must answer.

use caipe_model::{ToolCall, ToolResult};
use serde_json::Value;

use crate::budget::LimitKind;
use crate::digest;
use crate::loops::{Loops, Repeated};
use crate::state::{CallStatus, RunState};
use crate::tools::TODO_TOOL;

/// Calls that are not run before the run must answer.
const REFUSALS: u32 = 2;

/// Arguments that only tell why a call is made.
const COMMENTS: [&str; 2] = ["thought", "reason"];

/// The result of a call that a guard does not run; `None` if it may run.
pub(super) fn refusal(state: &mut RunState, call: &ToolCall) -> Option<String> {
    if state.abilities.traits_of(&call.name).is_pause {
        return None;
    }
    let guards = state.abilities.limits.guards;
    let (signature, loops) = (signature(call), &mut state.counters.loops);
    let tool = &call.name;
    if let Some(repeated) = reached(loops.calls.get_mut(&signature), guards.repeated_calls) {
        return Some(not_run(&format!("the same call returned the same {repeated} times")));
    }
    if let Some(repeated) = reached(loops.errors.get_mut(tool), guards.repeated_errors.saturating_mul(2)) {
        return Some(not_run(&format!("{tool} failed with the same error {repeated} times")));
    }
    if guards.ping_pong > 0 && loops.cycles() >= guards.ping_pong && loops.continues(&signature) {
        loops.push(signature);
        return Some(not_run("you call the same two tools by turns"));
    }
    let rounds = guards.plan_rounds.saturating_mul(2);
    (rounds > 0 && loops.plan_rounds >= rounds && tool != TODO_TOOL).then(|| {
        not_run("no step of your plan has changed for a long time; first update it with write_todos")
    })
}

/// The number of repetitions if a guard does not run any more of them, which it counts.
fn reached(repeated: Option<&mut Repeated>, most: u32) -> Option<u32> {
    let repeated = repeated.filter(|repeated| most > 0 && repeated.times >= most)?;
    repeated.times += 1;
    repeated.refused += 1;
    Some(most)
}

fn not_run(why: &str) -> String {
    format!("[Not run] The call was not made: {why}. Do something else, or answer with what you have.")
}

/// Looks at the results of a round of calls, and adds reminders to them.
pub(super) fn review(state: &mut RunState) {
    let guards = state.abilities.limits.guards;
    let mut has_worked = false;
    for at in 0..state.calls.len() {
        let call = &state.calls[at];
        let CallStatus::Done { result, not_run: false } = &call.status else { continue };
        if call.step_of.is_some() {
            continue;
        }
        let Some(request) = request(state, &call.id).cloned() else { continue };
        has_worked |= request.name != TODO_TOOL;
        if state.abilities.traits_of(&request.name).is_pause {
            state.counters.loops.calls.clear();
            continue;
        }
        let reminder = follow(&mut state.counters.loops, &request, result, guards);
        if let (Some(reminder), CallStatus::Done { result, .. }) = (reminder, &mut state.calls[at].status) {
            result.content.push_str("\n\n[Reminder] ");
            result.content.push_str(&reminder);
        }
    }
    let has_open = state.plan.todos.iter().any(|todo| !todo.status.is_closed());
    let plan = if has_open { digest::short(&format!("{:?}", state.plan.todos)) } else { String::new() };
    let loops = &mut state.counters.loops;
    let is_same = has_open && loops.plan == plan;
    loops.plan_rounds =
        if is_same { loops.plan_rounds + u32::from(has_worked || loops.plan_rounds > 0) } else { 0 };
    loops.plan = plan;
    if is_same && guards.plan_rounds > 0 && loops.plan_rounds == guards.plan_rounds {
        let note = format!(
            "[Reminder] No step of your plan has changed in {} rounds of calls. Update it with write_todos, or answer with what \
             you have.",
            guards.plan_rounds
        );
        state.guards.note = Some(note);
    }
}

/// The call of the model, which has the arguments as the model wrote them.
fn request<'a>(state: &'a RunState, id: &str) -> Option<&'a ToolCall> {
    state.messages.iter().rev().find_map(|message| message.tool_calls().find(|call| call.id == id))
}

/// Counts a call with its result. Returns what the model should read about it.
fn follow(
    loops: &mut Loops,
    call: &ToolCall,
    result: &ToolResult,
    guards: crate::abilities::GuardLimits,
) -> Option<String> {
    let signature = signature(call);
    let times = loops.count_call(&signature, &result.content);
    let errors = loops.count_error(&call.name, result.is_error.then_some(&result.content));
    if call.name != TODO_TOOL {
        loops.push(signature);
    }
    let advice = "Consider a fundamentally different approach, or answer with what you have.";
    if guards.repeated_calls > 0 && times == guards.repeated_calls {
        return Some(format!("You have made this call {times} times with the same result. {advice}"));
    }
    if guards.repeated_errors > 0 && errors >= guards.repeated_errors {
        return Some(format!("{} has failed {errors} times with the same error. {advice}", call.name));
    }
    let is_ping_pong = guards.ping_pong > 0 && loops.cycles() == guards.ping_pong && loops.has_full_cycle();
    is_ping_pong
        .then(|| format!("You have called the same two tools by turns {} times. {advice}", guards.ping_pong))
}

/// The guard that ends the run, with the reason for people.
pub(super) fn verdict(state: &RunState) -> Option<(LimitKind, String)> {
    let (guards, loops) = (state.abilities.limits.guards, &state.counters.loops);
    let over = |repeated: &Repeated| repeated.refused >= REFUSALS;
    let stopped = |most: u32, count: u32| most > 0 && count >= most;
    if loops.calls.values().any(over) {
        return Some((LimitKind::RepeatedCalls, "the language model repeats the same call".to_owned()));
    }
    if let Some((tool, _)) = loops.errors.iter().find(|(_, errors)| over(errors)) {
        return Some((LimitKind::RepeatedErrors, format!("{tool} fails again and again")));
    }
    if stopped(guards.ping_pong, loops.cycles().saturating_sub(1)) {
        let reason = "the language model calls the same two tools by turns".to_owned();
        return Some((LimitKind::PingPong, reason));
    }
    let rounds = guards.plan_rounds.saturating_mul(2).saturating_add(REFUSALS);
    if guards.plan_rounds > 0 && loops.plan_rounds >= rounds {
        return Some((LimitKind::PlanRounds, "the plan makes no progress".to_owned()));
    }
    // Between calls, a model may return more empty turns than in a row.
    let empty = guards.empty_turns.saturating_mul(3).saturating_add(1);
    (guards.empty_turns > 0 && loops.empty_turns >= empty)
        .then(|| (LimitKind::EmptyTurns, "the language model returns empty answers".to_owned()))
}

/// What identifies a call: the tool, and the arguments without comments and differences in spaces.
fn signature(call: &ToolCall) -> String {
    let arguments =
        serde_json::from_str(&call.arguments).map_or_else(|_| Value::from(&*call.arguments), normal);
    digest::short(&digest::canonical(&Value::from(vec![Value::from(&*call.name), arguments])))
}

fn normal(value: Value) -> Value {
    match value {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" ").into(),
        Value::Array(values) => values.into_iter().map(normal).collect(),
        Value::Object(members) => {
            let members = members
                .into_iter()
                .filter(|(name, value)| !value.is_null() && !COMMENTS.contains(&name.as_str()));
            members.map(|(name, value)| (name, normal(value))).collect()
        }
        other => other,
    }
}
