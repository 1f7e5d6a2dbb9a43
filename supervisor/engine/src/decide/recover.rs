//! Taking over a run from a process that died.

use crate::conversation::interrupted;
use crate::effects::Effects;
use crate::event::{CallEnd, Emit, EventKind};
use crate::io::Resume;
use crate::state::{CallKind, CallStatus, Phase, RunState};

use super::endings::resume_point;
use super::{calls, endings, turn};

/// Continues what was under way. What waits for a human keeps waiting.
pub(super) fn recovered(state: &mut RunState, out: &mut Effects) {
    match state.phase {
        Phase::Idle | Phase::Waiting => {}
        Phase::Model { .. } => {
            // Text of a turn is emitted without being saved, so there may have been some.
            out.emit(EventKind::TextReset);
            turn::ask_again(state, out);
        }
        Phase::Calls => resume_calls(state, out),
    }
}

fn resume_calls(state: &mut RunState, out: &mut Effects) {
    let chars = state.abilities.limits.tool_output_chars;
    let mut resumed = Vec::new();
    for call in state.calls.iter_mut().filter(|call| call.status.is_at_work()) {
        if call.kind == CallKind::Tool && call.status == CallStatus::Running {
            // Nobody knows whether it took effect, and it might do so twice.
            let text = interrupted(&call.name);
            endings::finish_call(call, CallEnd::Failed, Err(text), chars, out);
        } else {
            let resume = Resume { from: resume_point(&call.status), answered: None };
            resumed.push(calls::perform(call, Some(resume)));
        }
    }
    calls::start_ready(state, out);
    out.extend(resumed);
    calls::settle(state, out);
}
