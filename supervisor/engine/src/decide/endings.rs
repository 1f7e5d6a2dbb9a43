//! The ends of calls: each call has exactly one result, and each emitted start exactly one end.

use std::sync::Arc;

use caipe_model::{Message, ToolResult, truncated};

use crate::conversation::TRUNCATED;
use crate::effects::Effects;
use crate::event::{CallEnd, Emit, EventKind};
use crate::io::{Effect, ResumePoint};
use crate::state::{CallKind, CallStatus, PendingCall, RunState};

/// Most characters of a result that an event shows (`MAX_TOOL_OUTPUT_LENGTH`).
const SHOWN_CHARS: usize = 2000;

/// Ends those of the calls without a result that are meant, and stops what runs for them.
pub(super) fn stop(
    state: &mut RunState,
    meant: impl Fn(&PendingCall) -> bool,
    end: CallEnd,
    why: impl Fn(&PendingCall) -> String,
    out: &mut Effects,
) {
    let mut aborted = Vec::new();
    for call in
        state.calls.iter_mut().filter(|call| !matches!(call.status, CallStatus::Done { .. }) && meant(call))
    {
        let why = why(call);
        out.extend(withdrawal(call));
        if call.status.is_started() {
            aborted.push(call.id.clone());
            emit_end(call, end, &why, out);
        }
        close(call, Err(why), usize::MAX);
    }
    if !aborted.is_empty() {
        out.push(Effect::Abort { calls: aborted });
    }
}

/// Withdraws the question of a remote agent that nobody will answer. The edge stops an agent that is at work.
fn withdrawal(call: &PendingCall) -> Option<Effect> {
    let (CallKind::Delegation { agent }, CallStatus::Waiting { then, .. }) = (&call.kind, &call.status)
    else {
        return None;
    };
    let from = resume_point(then).filter(|from| matches!(from, ResumePoint::Remote { .. }))?;
    Some(Effect::Withdraw { call: call.id.clone(), agent: agent.clone(), from })
}

/// Ends a started call: emits the end; the result waits for its siblings.
pub(super) fn finish_call(
    call: &mut PendingCall,
    end: CallEnd,
    result: Result<String, String>,
    chars: usize,
    out: &mut Effects,
) {
    let (Ok(text) | Err(text)) = &result;
    emit_end(call, end, text, out);
    close(call, result, chars);
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

/// Gives a call its result without telling anybody.
pub(super) fn close(call: &mut PendingCall, result: Result<String, String>, chars: usize) {
    let is_error = result.is_err();
    let text = match result {
        Ok(text) if text.trim().is_empty() => "(no output)".to_owned(),
        Ok(text) | Err(text) => truncated(&text, chars, TRUNCATED).into_owned(),
    };
    call.status =
        CallStatus::Done { result: ToolResult { call_id: call.id.clone(), content: text, is_error } };
}

/// How a call ended that says this.
pub(super) const fn ending(result: &Result<String, String>) -> CallEnd {
    if result.is_ok() { CallEnd::Completed } else { CallEnd::Failed }
}

/// Where a delegation stood, if anything of it was saved.
pub(super) fn resume_point(status: &CallStatus) -> Option<ResumePoint> {
    match status {
        CallStatus::Remote { task, context, place } => {
            Some(ResumePoint::Remote { task: task.clone(), context: context.clone(), place: *place })
        }
        CallStatus::Nested { frame } => Some(ResumePoint::Nested(frame.clone())),
        _ => None,
    }
}

/// Puts the results of the round into the conversation, in the order in which the model asked.
pub(super) fn conclude_round(state: &mut RunState) {
    let results: Vec<ToolResult> = std::mem::take(&mut state.calls)
        .into_iter()
        .filter_map(|call| if let CallStatus::Done { result } = call.status { Some(result) } else { None })
        .collect();
    if !results.is_empty() {
        state.messages.push(Arc::new(Message::results(results)));
    }
}
