//! Recovers a run whose process died.

use crate::conversation::interrupted;
use crate::effects::Effects;
use crate::event::{Emit, EventKind};
use crate::form::Answered;
use crate::io::Resume;
use crate::state::{CallKind, CallStatus, Phase, RunState};
use crate::tools::{WRITE_TOOLS, offers_file_tool};

use super::{call_results, calls, model_request};

/// Continues the run. A run that waits for a person keeps waiting.
pub(super) fn recovered(state: &mut RunState, out: &mut Effects) {
    match state.phase {
        Phase::Idle | Phase::Waiting => {}
        Phase::Model { .. } => {
            // The turn may have emitted text, which is not saved.
            out.emit(EventKind::TextReset);
            model_request::ask_again(state, out);
        }
        Phase::Calls => resume_calls(state, out),
    }
}

fn resume_calls(state: &mut RunState, out: &mut Effects) {
    let mut resumed = Vec::new();
    for call in state.calls.iter_mut().filter(|call| call.status.is_at_work()) {
        if call.kind == CallKind::Tool && call.status == CallStatus::Running {
            let reads_volume =
                offers_file_tool(&state.abilities, &call.name) && !WRITE_TOOLS.contains(&&*call.name);
            if reads_volume || state.abilities.traits_of(&call.name).is_repeatable {
                resumed.push(calls::perform(call, None));
                continue;
            }
            // The call may have taken effect, so it is not repeated.
            let text = interrupted(&call.name);
            call_results::finish_call(call, Err(text), &state.abilities, out);
        } else {
            let again = |answered: &Answered| Answered { is_repeated: true, ..answered.clone() };
            let answered = call.answered.as_deref().map(again);
            let resume = Resume { from: call_results::resume_point(&call.status), answered };
            resumed.push(calls::perform(call, Some(resume)));
        }
    }
    calls::start_ready(state, out);
    out.extend(resumed);
    calls::settle(state, out);
}
