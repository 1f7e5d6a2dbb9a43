//! A human has decided.

use serde_json::{Map, Value};

use crate::conversation;
use crate::effects::Effects;
use crate::form::{Decision, Form};
use crate::io::{Answered, Effect, Resume, ResumePoint};
use crate::state::{Abilities, CallKind, CallStatus, PendingCall, Phase, RunState};
use crate::tools::ask;

use super::{calls, endings, route};

/// What a rejection without words says.
const REJECTED: &str = "User rejected the request";

/// Applies one decision to each waiting call, and goes on. Calls that are done stay done.
pub(super) fn decided(state: &mut RunState, decisions: &[Decision], out: &mut Effects) {
    if state.phase != Phase::Waiting {
        return;
    }
    state.phase = Phase::Calls;
    let mut resumed = Vec::new();
    let mut edited = Vec::new();
    let waiting = state.calls.iter_mut().filter(|call| matches!(call.status, CallStatus::Waiting { .. }));
    for (index, call) in waiting.enumerate() {
        if let Some(decision) = decisions.get(index).or(decisions.last()) {
            resumed.extend(apply(&state.abilities, call, decision));
            if call.status == CallStatus::Ready && matches!(decision, Decision::Submit { .. }) {
                edited.push((call.id.clone(), call.arguments.to_string()));
            }
        }
    }
    conversation::edit_calls(&mut state.messages, edited);
    calls::start_ready(state, out);
    out.extend(resumed);
    calls::settle(state, out);
}

/// Applies a decision to the call that waits for it; the effect resumes an agent that had asked.
fn apply(abilities: &Abilities, call: &mut PendingCall, decision: &Decision) -> Option<Effect> {
    let CallStatus::Waiting { form, then } = std::mem::replace(&mut call.status, CallStatus::Ready) else {
        return None;
    };
    if call.kind == CallKind::Ask {
        endings::close(call, answer(&form, decision), usize::MAX);
    } else if then.is_started() {
        // The agent knows what it asked: it gets the decision as it is.
        let from = resume_point(&then);
        call.status = *then;
        let decision = Some(Answered { form, decision: decision.clone() });
        return Some(calls::perform(call, Some(Resume { from, decision })));
    } else if let Err(refusal) = approve(abilities, call, decision) {
        endings::close(call, Err(refusal), usize::MAX);
    }
    None
}

/// What the model reads of a form.
fn answer(form: &Form, decision: &Decision) -> Result<String, String> {
    match decision {
        Decision::Approve => ask::submitted(form, &Map::new()),
        Decision::Submit { values } => ask::submitted(form, values),
        Decision::Reject { message } => Err(rejection(message)),
    }
}

/// Lets a call go on, with other arguments if the human wants so.
fn approve(abilities: &Abilities, call: &mut PendingCall, decision: &Decision) -> Result<(), String> {
    match decision {
        Decision::Approve => {}
        Decision::Submit { values } => call.arguments = Value::Object(values.clone()),
        Decision::Reject { message } => return Err(rejection(message)),
    }
    // Much may have changed since: arguments, and who is there.
    if matches!(call.kind, CallKind::Delegation { .. }) {
        call.kind = CallKind::Delegation { agent: route::delegate(abilities, call.arguments())? };
    }
    Ok(())
}

fn rejection(message: &str) -> String {
    if message.trim().is_empty() { REJECTED.to_owned() } else { message.to_owned() }
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
