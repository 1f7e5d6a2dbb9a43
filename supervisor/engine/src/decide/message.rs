//! A message begins a run.

use std::sync::Arc;

use caipe_model::{Message, Part};

use crate::abilities::Abilities;
use crate::conversation;
use crate::effects::Effects;
use crate::plan::Plan;
use crate::state::{CallKind, CallStatus, Counters, Guards, PendingCall, Phase, RunState};
use crate::text::AnswerText;
use crate::tools::offers_files;
use crate::verification::Unverified;
use crate::volume::VolumeView;
use crate::workspace::environment;

use super::{call_results, model_request};

/// The result of a form that the user did not submit.
const UNANSWERED: &str = "The form was not submitted: the user went on with the next message instead.";

/// The result of a workflow whose question the user did not answer.
const ABANDONED: &str =
    "The workflow stopped: the user went on with the next message instead of answering its question.";

/// The result of a call that the user did not approve.
const UNAPPROVED: &str = "Not run: the user did not approve it and went on with the next message instead.";

/// Begins a run, unless one is under way.
pub(super) fn begin(state: &mut RunState, message: Arc<Message>, abilities: Abilities, out: &mut Effects) {
    match state.phase {
        Phase::Idle => {}
        Phase::Waiting => give_up_waiting(state, out),
        Phase::Model { .. } | Phase::Calls => return,
    }
    state.abilities = abilities;
    state.plan = Plan::default();
    state.text = AnswerText::default();
    state.answers.clear();
    state.sources.clear();
    // Turns keep their numbers, so that a late piece of an old one never fits a new one.
    state.counters = Counters { turns: state.counters.turns, ..Counters::default() };
    state.guards = Guards::default();
    state.unverified = Unverified::default();
    state.condensing = None;
    conversation::repair(&mut state.messages);
    let volume = state.volume.take();
    state.messages.push(with_environment(state, volume.as_ref(), message));
    model_request::ask(state, out);
}

/// The message, and after it what the workspace contains, if the agent has one.
fn with_environment(
    state: &RunState,
    volume: Option<&VolumeView>,
    mut message: Arc<Message>,
) -> Arc<Message> {
    let has_workspace = state.abilities.workspace && offers_files(&state.abilities);
    if let Some(text) = environment(&state.files, volume).filter(|_| has_workspace) {
        Arc::make_mut(&mut message).parts.push(Part::Text { text: format!("\n\n{text}") });
    }
    message
}

/// Cancels the calls that wait for the user, who sent another message instead of an answer.
fn give_up_waiting(state: &mut RunState, out: &mut Effects) {
    call_results::cancel(state, |_| true, |call| unanswered(call).to_owned(), out);
    call_results::conclude_round(state);
}

fn unanswered(call: &PendingCall) -> &'static str {
    match call.kind {
        CallKind::Ask => UNANSWERED,
        CallKind::Delegation { .. } if call.status.is_started() => UNANSWERED,
        CallKind::Workflow { .. } if matches!(call.status, CallStatus::Steps { .. }) => ABANDONED,
        _ => UNAPPROVED,
    }
}
