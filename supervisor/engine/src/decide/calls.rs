//! The calls of a round, from their start until all of them have a result.

use std::collections::BTreeSet;

use crate::abilities::AnswerMode;
use crate::effects::Effects;
use crate::event::{Emit, EventKind, Outcome, RunEvent};
use crate::io::{Effect, ModelUse, Resume, ToolOutput};
use crate::names::{AgentName, CallId};
use crate::plan_step::PlanCause;
use crate::source;
use crate::state::{CallKind, CallStatus, PendingCall, Phase, RunState};
use crate::tools::{apply_output, note_use, offers_file_tool};

use super::{call_results, compact, guards, model_request, route, tool_limits, workflow};

/// Starts the ready calls. Emits the plan first, so that every start finds its step.
pub(super) fn start_ready(state: &mut RunState, out: &mut Effects) {
    workflow::begin_ready(state, out);
    let held = held(state);
    let starts = |call: &PendingCall| matches!(call.status, CallStatus::Ready) && !held.contains(&call.id);
    for call in state.calls.iter().filter(|call| starts(call)) {
        if let CallKind::Delegation { agent } = &call.kind {
            state.plan.delegate(&call.id, agent, route::prompt(call.arguments()));
        }
    }
    emit_plan(state, PlanCause::Delegation, out);
    let mut effects = Vec::new();
    for call in state.calls.iter_mut().filter(|call| starts(call)) {
        *state.counters.calls.entry(call.name.clone()).or_default() += 1;
        call.status = CallStatus::Running;
        let (id, tool) = (call.id.clone(), call.name.clone());
        out.emit(match &call.kind {
            CallKind::Delegation { agent } => EventKind::DelegationStarted { call: id, agent: agent.clone() },
            _ => EventKind::ToolStarted { call: id, tool },
        });
        effects.push(perform(call, None));
    }
    out.extend(effects);
}

/// The calls that wait for earlier ones of the same turn, because they work on the same files.
fn held(state: &RunState) -> BTreeSet<CallId> {
    let is_open = |call: &PendingCall| match &call.status {
        CallStatus::Waiting { then, .. } => **then == CallStatus::Ready,
        status => matches!(status, CallStatus::Ready | CallStatus::Running),
    };
    let in_order = state.calls.iter().filter(|call| {
        let abilities = &state.abilities;
        let is_in_order =
            abilities.traits_of(&call.name).is_in_order || offers_file_tool(abilities, &call.name);
        call.kind == CallKind::Tool && is_open(call) && is_in_order
    });
    in_order.skip(1).filter(|call| call.status == CallStatus::Ready).map(|call| call.id.clone()).collect()
}

/// The effect that executes a call.
pub(super) fn perform(call: &PendingCall, resume: Option<Resume>) -> Effect {
    match &call.kind {
        CallKind::Delegation { agent } => Effect::Delegate {
            call: call.id.clone(),
            agent: agent.clone(),
            prompt: route::prompt(call.arguments()).to_owned(),
            resume,
        },
        _ => Effect::CallTool {
            call: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
        },
    }
}

/// Emits the progress of an agent that a tool calls, until the tool has its result.
pub(super) fn tool_progress(state: &RunState, id: &str, agent: &AgentName, text: String, out: &mut Effects) {
    if state.phase == Phase::Calls && state.calls.iter().any(|call| is_running_tool(call, id)) {
        let kind = EventKind::Noticed { text, end: None };
        out.push(Effect::Emit(RunEvent::own(kind).within(agent)));
    }
}

/// Emits a call that the client of the run answers, until it has its result.
pub(super) fn call_client(state: &RunState, id: &str, out: &mut Effects) {
    let call = state.calls.iter().find(|call| is_running_tool(call, id));
    if let Some(PendingCall { name, arguments, .. }) = call.filter(|_| state.phase == Phase::Calls) {
        let (call, tool, arguments) = (id.to_owned(), name.clone(), arguments.clone());
        out.emit(EventKind::ClientCall { call, tool, arguments });
    }
}

fn is_running_tool(call: &PendingCall, id: &str) -> bool {
    call.id == id && call.kind == CallKind::Tool && call.status == CallStatus::Running
}

/// Ends a tool call. The time that it took is in milliseconds.
pub(super) fn tool_finished(
    state: &mut RunState,
    id: &str,
    (output, time_ms): (ToolOutput, u64),
    out: &mut Effects,
) {
    if state.phase != Phase::Calls || !state.calls.iter().any(|call| is_running_tool(call, id)) {
        return;
    }
    let ToolOutput { mut content, is_error, exit_code, files, on_volume, model_use } = output;
    if let Some(ModelUse { model, usage }) = model_use {
        state.counters.usage += usage;
        state.counters.spent.add_turn(&state.abilities.budget, &model, usage);
    }
    if let Some(by) = &state.abilities.verification {
        let succeeded = !is_error && exit_code.unwrap_or_default() == 0;
        let tool = state.calls.iter().find(|call| call.id == id).map(|call| call.name.as_str());
        let changed = files.keys().chain(&on_volume);
        state.unverified.called(by, (tool.unwrap_or_default(), succeeded), changed);
    }
    if !is_error {
        note_volume(state, id);
    }
    for fault in apply_output(state, files) {
        content.extend(["\n", &*fault]);
    }
    let Some(call) = state.calls.iter_mut().find(|call| is_running_tool(call, id)) else { return };
    if !is_error && state.abilities.traits_of(&call.name).is_knowledge {
        source::collect(&mut state.sources, call.arguments(), &content);
    }
    let (tool, chars) = (call.name.clone(), call_results::most_chars(&state.abilities, &call.name));
    let short = compact::shortened(state, &tool, &content, (exit_code, chars));
    let result = if is_error { Err(content) } else { Ok(content) };
    if let Some(call) = state.calls.iter_mut().find(|call| call.id == id) {
        call_results::finish_call(call, result, &state.abilities, out);
        if let Some(short) = short {
            call_results::replace(call, short);
        }
    }
    tool_limits::count_result(state, id, time_ms);
    settle(state, out);
}

/// Notes the file of the volume that a call of a file tool has written or read.
fn note_volume(state: &mut RunState, id: &str) {
    let call =
        state.calls.iter().find(|call| call.id == id && offers_file_tool(&state.abilities, &call.name));
    let call = call.and_then(|call| Some((call.name.clone(), call.arguments.as_object()?.clone())));
    if let Some((name, arguments)) = call {
        note_use(state, &name, &arguments);
    }
}

/// Continues once no call is open: asks the model, or waits for a person.
pub(super) fn settle(state: &mut RunState, out: &mut Effects) {
    workflow::advance(state, out);
    if state.calls.iter().any(|call| matches!(call.status, CallStatus::Ready)) {
        start_ready(state, out);
    } else {
        emit_plan(state, PlanCause::Progress, out);
    }
    let held = held(state);
    if state.calls.iter().any(|call| call.status.is_open() && !held.contains(&call.id)) {
        return;
    }
    if state.calls.iter().any(|call| call.status.question().is_some()) {
        return suspend(state, out);
    }
    guards::review(state);
    call_results::conclude_round(state);
    model_request::ask(state, out);
}

/// Stops the run until a person has answered every question.
pub(super) fn suspend(state: &mut RunState, out: &mut Effects) {
    state.phase = Phase::Waiting;
    for form in state.questions() {
        out.emit(EventKind::InputRequired { form: form.clone() });
    }
    out.emit(EventKind::Finished { outcome: Outcome::InputRequired });
    out.push(Effect::Finish);
}

/// Emits the plan if it has changed and this agent shows one.
pub(super) fn emit_plan(state: &mut RunState, cause: PlanCause, out: &mut Effects) {
    if state.abilities.answer != AnswerMode::Plain
        && let Some(plan) = state.plan.changed(cause)
    {
        out.emit(plan);
    }
}
