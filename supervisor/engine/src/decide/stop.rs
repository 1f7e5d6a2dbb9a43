//! Stopping before the end.

use crate::conversation::interrupted;
use crate::effects::Effects;
use crate::event::{CallEnd, Outcome};
use crate::state::{CallStatus, PendingCall, Phase, RunState};

use super::finish::{self, Cause};
use super::{calls, endings, turn};

/// Why a run that has no time left ends.
const TIME_IS_UP: &str = "the time for this request is up";

/// Stops the run, and what it has started.
pub(super) fn cancel(state: &mut RunState, out: &mut Effects) {
    if state.phase != Phase::Idle {
        endings::stop(state, |_| true, CallEnd::Canceled, |call| interrupted(&call.name), out);
        finish::end(state, Outcome::Canceled, out);
    }
}

/// Gets an answer from what there is; a second deadline does without the model.
pub(super) fn deadline(state: &mut RunState, out: &mut Effects) {
    match state.phase {
        Phase::Idle | Phase::Waiting => {}
        Phase::Model { .. } if state.guards.last_turn => finish::cut_short(state, Cause::Time, out),
        Phase::Model { .. } => {
            state.text.void(out);
            turn::ask_for_last_answer(state, Some(TIME_IS_UP), Cause::Time, out);
        }
        Phase::Calls => stop_calls(state, out),
    }
}

/// Stops what is at work. What waits for a human keeps waiting: that time does not count.
fn stop_calls(state: &mut RunState, out: &mut Effects) {
    let why = |call: &PendingCall| format!("Tool '{}' did not complete ({TIME_IS_UP}).", call.name);
    endings::stop(state, |call| call.status.is_open(), CallEnd::Canceled, why, out);
    if state.calls.iter().any(|call| matches!(call.status, CallStatus::Waiting { .. })) {
        return calls::suspend(state, out);
    }
    endings::conclude_round(state);
    turn::ask_for_last_answer(state, Some(TIME_IS_UP), Cause::Time, out);
}
