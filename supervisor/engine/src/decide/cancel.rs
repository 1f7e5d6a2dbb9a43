//! Cancels a run, or ends it at its deadline.

use crate::budget::LimitKind;
use crate::conversation::interrupted;
use crate::effects::Effects;
use crate::event::Outcome;
use crate::state::{PendingCall, Phase, RunState};

use super::finish::{self, Cause};
use super::{call_results, calls, limits, model_request, workflow};

const TIME_IS_UP: &str = "the time for this request is up";

pub(super) fn cancel(state: &mut RunState, out: &mut Effects) {
    if state.phase != Phase::Idle {
        call_results::cancel(state, |_| true, |call| interrupted(&call.name), out);
        finish::end(state, Outcome::Canceled, out);
    }
}

/// Asks the model for its last answer; a second deadline ends the run without it.
pub(super) fn deadline(state: &mut RunState, out: &mut Effects) {
    match state.phase {
        Phase::Idle | Phase::Waiting => {}
        Phase::Model { .. } if state.guards.last_turn => finish::cut_short(state, Cause::Time, out),
        Phase::Model { .. } => {
            state.text.void(out);
            limits::report(state, LimitKind::Time, TIME_IS_UP, out);
            model_request::ask_for_last_answer(state, Some(TIME_IS_UP), Cause::Time, out);
        }
        Phase::Calls => stop_calls(state, out),
    }
}

/// Cancels the open calls. Calls that wait for a person keep waiting: that time does not count.
fn stop_calls(state: &mut RunState, out: &mut Effects) {
    let why = |call: &PendingCall| format!("Tool '{}' did not complete ({TIME_IS_UP}).", call.name);
    call_results::cancel(state, |call| call.status.is_open(), why, out);
    workflow::advance(state, out);
    if state.calls.iter().any(|call| call.status.question().is_some()) {
        return calls::suspend(state, out);
    }
    call_results::conclude_round(state);
    limits::report(state, LimitKind::Time, TIME_IS_UP, out);
    model_request::ask_for_last_answer(state, Some(TIME_IS_UP), Cause::Time, out);
}
