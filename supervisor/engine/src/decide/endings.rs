//! How calls end: each has exactly one result, and each start that was told exactly one end.

use caipe_model::{ToolResult, truncated};

use crate::conversation::TRUNCATED;
use crate::effects::Effects;
use crate::event::{CallEnd, EventKind};
use crate::io::{Effect, ResumePoint};
use crate::state::{CallKind, CallStatus, PendingCall, RunState};

use super::human::resume_point;

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
            tell_end(call, end, &why, out);
        }
        close(call, Err(why), usize::MAX);
    }
    if !aborted.is_empty() {
        out.push(Effect::Abort { calls: aborted });
    }
}

/// What a remote agent must be told whose question nobody will answer. One that is at work is stopped where it is
/// listened to.
fn withdrawal(call: &PendingCall) -> Option<Effect> {
    let (CallKind::Delegation { agent }, CallStatus::Waiting { then, .. }) = (&call.kind, &call.status)
    else {
        return None;
    };
    let from = resume_point(then).filter(|from| matches!(from, ResumePoint::Remote { .. }))?;
    Some(Effect::Withdraw { call: call.id.clone(), agent: agent.clone(), from })
}

/// Ends a call that was started: the end is told, and the result waits for its siblings.
pub(super) fn finish_call(
    call: &mut PendingCall,
    end: CallEnd,
    result: Result<String, String>,
    chars: usize,
    out: &mut Effects,
) {
    let (Ok(text) | Err(text)) = &result;
    tell_end(call, end, text, out);
    close(call, result, chars);
}

/// Tells how a call ended.
pub(super) fn tell_end(call: &PendingCall, end: CallEnd, text: &str, out: &mut Effects) {
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
