//! A model turn that failed.

use caipe_model::ModelErrorKind;

use crate::conversation;
use crate::effects::Effects;
use crate::io::ModelFailure;
use crate::state::{Phase, RunState};
use crate::tools::TODO_TOOL;

use super::finish::{self, Cause};
use super::{condense, model_request};

/// Tries again if that can help, else asks for an answer from the results so far, else ends the run.
pub(super) fn failed(state: &mut RunState, turn: u32, error: &ModelFailure, out: &mut Effects) {
    if state.phase != (Phase::Model { turn }) {
        return;
    }
    if state.condensing.take().is_some() {
        return model_request::ask_again(state, out);
    }
    let cause = Cause::Model(error.kind);
    if can_try_again(state, error.kind) {
        state.text.void(out);
        model_request::ask_again(state, out);
    } else if error.kind == ModelErrorKind::Auth || state.guards.last_turn {
        // With a rejected key even a last turn fails.
        finish::cut_short(state, cause, out);
    } else if has_results(state) {
        state.text.void(out);
        model_request::ask_for_last_answer(state, Some(&error.message), cause, out);
    } else {
        finish::failed(state, cause, out);
    }
}

/// Whether the run has results that the model can answer from.
fn has_results(state: &RunState) -> bool {
    state.counters.calls.keys().any(|tool| tool != TODO_TOOL) && conversation::has_results(&state.messages)
}

/// Whether the same turn may succeed now, or with a smaller conversation; once each.
fn can_try_again(state: &mut RunState, kind: ModelErrorKind) -> bool {
    match kind {
        // The model layer retries only a turn that has not shown anything.
        ModelErrorKind::Truncated | ModelErrorKind::Transport => {
            !std::mem::replace(&mut state.guards.retried, true)
        }
        ModelErrorKind::ContextOverflow if !state.guards.trimmed => {
            state.guards.trimmed = true;
            let (most, _) = model_request::budget(state);
            let (dropped, is_shorter) = conversation::shrink(&mut state.messages, most / 2);
            condense::left_out(state, &dropped);
            is_shorter
        }
        _ => false,
    }
}
