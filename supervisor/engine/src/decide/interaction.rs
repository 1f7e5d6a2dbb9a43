//! A person's decisions.

use caipe_model::truncated;
use serde_json::{Map, Value};

use crate::abilities::Abilities;
use crate::conversation::{self, TRUNCATED};
use crate::effects::Effects;
use crate::event::{Emit, EventKind};
use crate::form::{Answered, BoundDecision, Decision, Form};
use crate::io::{Effect, Resume};
use crate::names::CallId;
use crate::state::{CallKind, CallStatus, PendingCall, Phase, RunState};
use crate::tools::form_tool;

use super::{call_results, calls, form_values, route};

/// The message of a rejection without one.
const REJECTED: &str = "User rejected the request";

/// The first line of the result of a call that a person has answered.
const RESPONDED: &str = "The tool was not called. A person answered instead:";

/// The reason for rejecting decisions that do not fit the questions.
const MISFIT: &str =
    "The decision was not applied: it fits no call that waits, or decides a question in part.";

/// Applies each decision to the call that it is about, and continues the run. Finished calls are not repeated, and questions
/// without a decision keep waiting.
pub(super) fn apply_decisions(state: &mut RunState, decisions: &[BoundDecision], out: &mut Effects) {
    if state.phase != Phase::Waiting {
        return;
    }
    if !decisions_match(state, decisions) {
        return ask_again(state, MISFIT.to_owned(), out);
    }
    let checked = match check_values(state, decisions) {
        Ok(checked) => checked,
        Err(reason) => return ask_again(state, reason, out),
    };
    allow_always(state, decisions);
    state.phase = Phase::Calls;
    // The answer may begin another task, whose client has not seen the plan.
    if let Some(plan) = state.plan.last_emitted() {
        out.emit(plan);
    }
    let mut resumed = Vec::new();
    let mut edited = Vec::new();
    for (id, own) in checked {
        let Some(call) = state.calls.iter_mut().find(|call| call.id == id) else { continue };
        let is_edit = own.iter().any(|decision| matches!(decision, Decision::Edit { .. }));
        resumed.extend(apply(&state.abilities, call, own));
        if call.status == CallStatus::Ready && is_edit {
            edited.push((call.id.clone(), call.arguments.to_string()));
        }
    }
    conversation::edit_calls(&mut state.messages, edited);
    calls::start_ready(state, out);
    out.extend(resumed);
    calls::settle(state, out);
}

/// Records which tools a person has allowed for the rest of the conversation.
fn allow_always(state: &mut RunState, decisions: &[BoundDecision]) {
    let asked: Vec<Form> = state.questions().into_iter().flat_map(Form::calls).collect();
    for decision in decisions.iter().filter(|decision| decision.decision == Decision::Always) {
        let Some(call) = asked.iter().find(|call| decision.is_about(call)) else { continue };
        if let Some(agent) = state.asking_agent(&call.id).cloned() {
            state.always_allowed.entry(agent).or_default().insert(call.action.clone());
        }
    }
}

/// The decisions of each question, by call, with the values of forms in the types of their fields; or why values are invalid,
/// for people. Then the fields keep the valid values and say what is wrong with the others.
fn check_values(
    state: &mut RunState,
    decisions: &[BoundDecision],
) -> Result<Vec<(CallId, Vec<Decision>)>, String> {
    let (mut checked, mut faults) = (Vec::new(), Vec::new());
    for call in &mut state.calls {
        let CallStatus::Waiting { form, .. } = &mut call.status else { continue };
        let own = decided(form, decisions);
        if !own.is_empty() {
            checked.push((call.id.clone(), form_values::check(form, own, &mut faults)));
        }
    }
    faults.dedup();
    if faults.is_empty() {
        Ok(checked)
    } else {
        Err(format!("The form was not submitted. {}", faults.join(" ")))
    }
}

/// The decisions about the calls of a question, in the order of the calls.
fn decided(question: &Form, decisions: &[BoundDecision]) -> Vec<Decision> {
    let of = |call: &Form| decisions.iter().find(|decision| decision.is_about(call));
    question.calls().iter().filter_map(of).map(|bound| bound.decision.clone()).collect()
}

/// Whether each decision is about exactly one waiting call and fits it, no two are about the same call, and no question is
/// decided in part.
fn decisions_match(state: &RunState, decisions: &[BoundDecision]) -> bool {
    let questions = state.questions();
    let asked: Vec<Form> = questions.iter().flat_map(|question| question.calls()).collect();
    let is_one = |decision: &BoundDecision| {
        let mut about = asked.iter().filter(|call| decision.is_about(call));
        about.next().is_some_and(|call| decision.decision.fits(call)) && about.next().is_none()
    };
    let is_whole = |question: &&Form| {
        let (calls, decided) = (question.calls().len(), decided(question, decisions).len());
        decided == 0 || decided == calls
    };
    let repeated = (1..decisions.len()).any(|at| {
        let (before, rest) = decisions.split_at(at);
        rest.first()
            .is_some_and(|decision| before.iter().any(|other| other.interaction == decision.interaction))
    });
    !decisions.is_empty() && !repeated && decisions.iter().all(is_one) && questions.iter().all(is_whole)
}

/// Asks the waiting questions again. The rejected answer changes nothing.
pub(super) fn ask_again(state: &mut RunState, reason: String, out: &mut Effects) {
    if state.phase == Phase::Waiting {
        out.emit(EventKind::DecisionRefused { reason });
        calls::suspend(state, out);
    }
}

/// Applies the decisions to the call that waits for them. The effect resumes an agent that asked.
fn apply(abilities: &Abilities, call: &mut PendingCall, decisions: Vec<Decision>) -> Option<Effect> {
    let CallStatus::Waiting { form, then } = std::mem::replace(&mut call.status, CallStatus::Ready) else {
        return None;
    };
    if call.kind != CallKind::Ask && then.is_started() {
        // The agent applies the decisions to its own question.
        let from = call_results::resume_point(&then);
        call.status = *then;
        let answered = Some(Answered { form, decisions, is_repeated: false });
        call.answered = answered.clone().map(Box::new);
        return Some(calls::perform(call, Some(Resume { from, answered })));
    }
    let decision = decisions.into_iter().next().unwrap_or(Decision::Reject { message: String::new() });
    if let (Some(_), CallKind::Ask, Decision::Submit { values }) = (&call.step_of, &call.kind, &decision) {
        // The values are those of the workflow too.
        call.arguments = Value::Object(values.clone());
    }
    let closed = match (&call.kind, decision) {
        (CallKind::Ask, decision) => Some(answer(&form, decision)),
        (_, Decision::Respond { message }) => Some(Ok(responded(&message, abilities))),
        (_, decision) => approve(abilities, call, &decision).err().map(Err),
    };
    if let Some(result) = closed {
        call_results::close(call, result, usize::MAX);
    }
    None
}

/// The result of a call that a person has answered.
fn responded(message: &str, abilities: &Abilities) -> String {
    let text = truncated(message, abilities.limits.tool_output_chars, TRUNCATED);
    format!("{RESPONDED}\n\n{text}")
}

/// The result of a form.
fn answer(form: &Form, decision: Decision) -> Result<String, String> {
    match decision {
        Decision::Submit { values } => Ok(form_tool::submitted(form, &values)),
        Decision::Approve | Decision::Always | Decision::Edit { .. } => {
            Ok(form_tool::submitted(form, &Map::new()))
        }
        Decision::Reject { message } | Decision::Respond { message } => Err(rejection(&message)),
    }
}

/// Approves a call, with other arguments if the person edited it.
fn approve(abilities: &Abilities, call: &mut PendingCall, decision: &Decision) -> Result<(), String> {
    match decision {
        Decision::Approve | Decision::Always | Decision::Submit { .. } => {}
        Decision::Edit { arguments } => call.arguments = Value::Object(arguments.clone()),
        Decision::Reject { message } | Decision::Respond { message } => return Err(rejection(message)),
    }
    // The arguments and the abilities may have changed since the question.
    if call.kind == CallKind::Tool {
        route::permitted(abilities, &call.name, call.arguments())?;
    }
    if matches!(call.kind, CallKind::Delegation { .. }) {
        call.kind = CallKind::Delegation { agent: route::delegate(abilities, call.arguments())? };
    }
    if matches!(call.kind, CallKind::Workflow { .. }) {
        call.kind = route::workflow(abilities, call.arguments())?;
    }
    Ok(())
}

fn rejection(message: &str) -> String {
    if message.trim().is_empty() { REJECTED.to_owned() } else { message.to_owned() }
}
