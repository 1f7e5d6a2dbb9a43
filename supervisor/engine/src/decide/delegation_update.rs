//! Updates of a delegation.

use caipe_model::truncated;

use crate::abilities::AnswerMode;
use crate::conversation::TRUNCATED;
use crate::effects::Effects;
use crate::event::CallEnd;
use crate::form::Form;
use crate::io::{DelegateUpdate, DelegationOutcome, Effect};
use crate::names::AgentName;
use crate::plan_step::PlanCause;
use crate::scratchpad;
use crate::state::{AgentAnswer, CallKind, CallStatus, PendingCall, Phase, RemotePlace, RunState};

use super::{call_results, calls, compact, workflow};

/// Applies an update of a delegation that is under way.
pub(super) fn update(state: &mut RunState, id: &str, update: DelegateUpdate, out: &mut Effects) {
    if !matches!(state.phase, Phase::Calls | Phase::Waiting) {
        return;
    }
    let over = state.phase == Phase::Waiting;
    let Some((call, agent)) = under_way(state, id) else { return };
    if shows_progress(&update) {
        call.answered = None;
    }
    match update {
        // A waiting run has ended for its clients, but the positions of its agents must still be saved.
        DelegateUpdate::Accepted { task, context } => {
            *status_mut(&mut call.status) =
                CallStatus::Remote { task, context, place: RemotePlace::default() }
        }
        DelegateUpdate::Checkpoint { frame, events } => {
            *status_mut(&mut call.status) = CallStatus::Nested { frame };
            let shown = events.into_iter().filter(|_| !over);
            shown.for_each(|event| out.push(Effect::Emit(event.within(&agent))));
        }
        _ if over => {}
        DelegateUpdate::Event { event, place: shown } => {
            if let (Some(shown), CallStatus::Remote { place, .. }) = (shown, status_mut(&mut call.status)) {
                *place = shown;
            }
            out.push(Effect::Emit(event.within(&agent)));
        }
        DelegateUpdate::Spent { spent } => state.counters.spent += spent,
        DelegateUpdate::Scratchpad { files } => scratchpad::take_over(state, files),
        DelegateUpdate::Asks { form } => {
            // Allowed calls are recorded by agent, and the supervisor knows the agents that it delegates to only.
            let is_nested = state.abilities.answer == AnswerMode::Plain;
            let form = if is_nested { form.without_always() } else { form };
            wait_for_interaction(state, id, &agent, form);
            calls::settle(state, out);
        }
        DelegateUpdate::Finished { outcome } => {
            finish(state, id, agent, outcome, out);
            calls::settle(state, out);
        }
    }
}

fn under_way<'a>(state: &'a mut RunState, id: &str) -> Option<(&'a mut PendingCall, AgentName)> {
    let call = state.calls.iter_mut().find(|call| call.id == id && call.status.is_started())?;
    let CallKind::Delegation { agent } = &call.kind else { return None };
    let agent = agent.clone();
    Some((call, agent))
}

/// Whether the update shows that the agent has taken the answer to its question.
const fn shows_progress(update: &DelegateUpdate) -> bool {
    match update {
        DelegateUpdate::Event { place, .. } => place.is_some(),
        DelegateUpdate::Accepted { .. }
        | DelegateUpdate::Scratchpad { .. }
        | DelegateUpdate::Spent { .. } => false,
        DelegateUpdate::Checkpoint { .. } | DelegateUpdate::Asks { .. } | DelegateUpdate::Finished { .. } => {
            true
        }
    }
}

/// The agent's status, whether the call waits for a person or not.
fn status_mut(status: &mut CallStatus) -> &mut CallStatus {
    match status {
        CallStatus::Waiting { then, .. } => status_mut(then),
        status => status,
    }
}

/// Adds a question of the agent. Several questions become one form.
fn wait_for_interaction(state: &mut RunState, id: &str, agent: &AgentName, mut form: Form) {
    let others = state.calls.iter().filter(|call| call.id != id).filter_map(|call| call.status.question());
    let known: Vec<String> = others.flat_map(Form::calls).map(|call| call.id).collect();
    // An agent must not give its question the id of another one.
    if form.calls().iter().any(|call| known.contains(&call.id)) {
        form.forget_ids();
    }
    state.interactions += 1;
    form.identify(agent, &format!("{}/{}", state.scope, state.interactions));
    let Some(call) = state.calls.iter_mut().find(|call| call.id == id) else { return };
    match &mut call.status {
        // A known question may have values by now.
        CallStatus::Waiting { form: known, .. }
            if *known == form || (!form.id.is_empty() && known.id == form.id) => {}
        CallStatus::Waiting { form: known, .. } => *known = Form::joined(vec![std::mem::take(known), form]),
        status => {
            let then = Box::new(std::mem::replace(status, CallStatus::Ready));
            *status = CallStatus::Waiting { form, then };
        }
    }
}

fn finish(state: &mut RunState, id: &str, agent: AgentName, outcome: DelegationOutcome, out: &mut Effects) {
    let chars = state.abilities.limits.tool_output_chars;
    let (end, text, result) = match outcome {
        DelegationOutcome::Completed { text } => (CallEnd::Completed, text.clone(), Ok(text)),
        DelegationOutcome::Failed { reason } => {
            (CallEnd::Failed, reason.clone(), Err(format!("ERROR: agent {agent}: {reason}")))
        }
        DelegationOutcome::Canceled => {
            let reason = format!("The agent {agent} was stopped before it had an answer.");
            (CallEnd::Canceled, reason.clone(), Err(reason))
        }
    };
    let words = state.abilities.answer_words.get(&agent).copied();
    let short = words
        .and_then(|words| compact::long_answer(state, &agent, &text, (words, chars)))
        .or_else(|| compact::shortened(state, agent.as_str(), &text, (None, chars)));
    if end == CallEnd::Completed && !text.trim().is_empty() {
        state.answers.push(AgentAnswer { agent, text: truncated(&text, chars, TRUNCATED).into_owned() });
    }
    let result = if end == CallEnd::Completed { workflow::take_files(state, id).and(result) } else { result };
    if let Some(call) = state.calls.iter_mut().find(|call| call.id == id) {
        call_results::emit_end(call, end, &text, out);
        call_results::close(call, result, chars);
        if let Some(short) = short.filter(|_| end == CallEnd::Completed) {
            call_results::replace(call, short);
        }
    }
    state.plan.end_task(id, end == CallEnd::Completed);
    calls::emit_plan(state, PlanCause::TaskCompleted, out);
}
