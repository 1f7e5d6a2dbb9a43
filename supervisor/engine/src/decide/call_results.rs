//! The ends of calls: each call has exactly one result, and each emitted start exactly one end.

use std::sync::Arc;

use caipe_model::{Message, ToolResult, truncated};

use crate::abilities::Abilities;
use crate::conversation::TRUNCATED;
use crate::effects::Effects;
use crate::event::{CallEnd, Emit, EventKind};
use crate::io::{Effect, ResumePoint};
use crate::state::{CallKind, CallStatus, PendingCall, RunState};

/// Most characters of a result that an event shows (`MAX_TOOL_OUTPUT_LENGTH`).
const SHOWN_CHARS: usize = 2000;

/// Cancels the calls without a result for which `affected` is true, and stops the work for them.
pub(super) fn cancel(
    state: &mut RunState,
    affected: impl Fn(&PendingCall) -> bool,
    why: impl Fn(&PendingCall) -> String,
    out: &mut Effects,
) {
    let mut aborted = Vec::new();
    let unfinished = |call: &&mut PendingCall| !matches!(call.status, CallStatus::Done { .. });
    for call in state.calls.iter_mut().filter(unfinished).filter(|call| affected(call)) {
        let why = why(call);
        out.extend(withdrawals(call));
        if call.status.is_started() {
            aborted.push(call.id.clone());
            emit_end(call, CallEnd::Canceled, &why, out);
        }
        close(call, Err(why), usize::MAX);
    }
    if !aborted.is_empty() {
        out.push(Effect::Abort { calls: aborted });
    }
}

/// Cancels the tasks of remote agents that work or ask for this call, also those of agents that it nests.
fn withdrawals(call: &PendingCall) -> Vec<Effect> {
    let CallKind::Delegation { agent } = &call.kind else { return Vec::new() };
    let status = if let CallStatus::Waiting { then, .. } = &call.status { then } else { &call.status };
    match resume_point(status) {
        Some(from @ ResumePoint::Remote { .. }) => {
            vec![Effect::Withdraw { call: call.id.clone(), agent: agent.clone(), from }]
        }
        Some(ResumePoint::Nested(frame)) => frame.calls.iter().flat_map(withdrawals).collect(),
        None => Vec::new(),
    }
}

/// Ends a started call: emits its end and stores its result. Clients do not see the documents of a knowledge base.
pub(super) fn finish_call(
    call: &mut PendingCall,
    result: Result<String, String>,
    abilities: &Abilities,
    out: &mut Effects,
) {
    match &result {
        Ok(_) if abilities.traits_of(&call.name).is_knowledge => out.emit(EventKind::ToolFinished {
            call: call.id.clone(),
            tool: call.name.clone(),
            end: CallEnd::Completed,
            output: None,
        }),
        Ok(text) => emit_end(call, CallEnd::Completed, text, out),
        Err(text) => emit_end(call, CallEnd::Failed, text, out),
    }
    close(call, result, most_chars(abilities, &call.name));
}

/// Most characters of a tool's result that the model reads.
pub(super) fn most_chars(abilities: &Abilities, tool: &str) -> usize {
    let chars = abilities.limits.tool_output_chars;
    abilities.traits_of(tool).output_chars.map_or(chars, |most| most.min(chars))
}

/// Replaces what the model reads of a call that has its result.
pub(super) fn replace(call: &mut PendingCall, text: String) {
    if let CallStatus::Done { result, .. } = &mut call.status {
        result.content = text;
    }
}

pub(super) fn emit_end(call: &PendingCall, end: CallEnd, text: &str, out: &mut Effects) {
    let id = call.id.clone();
    out.emit(if let CallKind::Delegation { agent } = &call.kind {
        EventKind::DelegationFinished { call: id, agent: agent.clone(), end, text: text.to_owned() }
    } else {
        let output = truncated(text, SHOWN_CHARS, "...\n[Output truncated]").into_owned();
        EventKind::ToolFinished { call: id, tool: call.name.clone(), end, output: Some(output) }
    });
}

/// Stores the result of a call without an event.
pub(super) fn close(call: &mut PendingCall, result: Result<String, String>, chars: usize) {
    let is_error = result.is_err();
    let text = match result {
        Ok(text) if text.trim().is_empty() => "(no output)".to_owned(),
        Ok(text) | Err(text) => truncated(&text, chars, TRUNCATED).into_owned(),
    };
    let result = ToolResult { call_id: call.id.clone(), content: text, is_error };
    call.status = CallStatus::Done { result, not_run: false };
}

/// The saved state of a delegation, if there is one.
pub(super) fn resume_point(status: &CallStatus) -> Option<ResumePoint> {
    match status {
        CallStatus::Remote { task, context, place } => {
            Some(ResumePoint::Remote { task: task.clone(), context: context.clone(), place: *place })
        }
        CallStatus::Nested { frame } => Some(ResumePoint::Nested(frame.clone())),
        _ => None,
    }
}

/// Moves the results of the calls into the conversation, in the order of the model's calls.
pub(super) fn conclude_round(state: &mut RunState) {
    let results: Vec<ToolResult> = std::mem::take(&mut state.calls)
        .into_iter()
        .filter(|call| call.step_of.is_none())
        .filter_map(
            |call| if let CallStatus::Done { result, .. } = call.status { Some(result) } else { None },
        )
        .collect();
    if !results.is_empty() {
        state.messages.push(Arc::new(Message::results(results)));
    }
}
