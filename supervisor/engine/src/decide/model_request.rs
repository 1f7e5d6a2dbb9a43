//! Asking the model.

use crate::conversation;
use crate::effects::Effects;
use crate::event::{Emit, EventKind};
use crate::io::Effect;
use crate::state::{Phase, RunState};

use super::finish::{self, Cause};
use super::{condense, guards, limits};

/// The percentage of the context at which the conversation is trimmed, and to which.
const FILL: (u64, u64) = (80, 60);

/// Most tokens of descriptions of tools that lower the space for the conversation.
const MOST_TOOL_TOKENS: u64 = 25_000;

/// Asks the model for the next turn, or for its last answer if no step is left.
pub(super) fn ask(state: &mut RunState, out: &mut Effects) {
    if let Some((limit, reason)) = limits::used_up(state).or_else(|| guards::verdict(state)) {
        limits::report(state, limit, &reason, out);
        return ask_for_last_answer(state, Some(&reason), Cause::Limit, out);
    }
    if steps_left(state) {
        limits::warn(state);
        state.counters.steps += 1;
        call_model(state, true, out);
    } else {
        ask_for_last_answer(state, None, Cause::Steps, out);
    }
}

/// Asks the model for an answer without tools, once in a run. The model reads the `detail` of the `cause`.
pub(super) fn ask_for_last_answer(
    state: &mut RunState,
    detail: Option<&str>,
    cause: Cause,
    out: &mut Effects,
) {
    if state.guards.last_turn {
        return finish::cut_short(state, cause, out);
    }
    state.guards.last_turn = true;
    conversation::repair(&mut state.messages);
    state.messages.push(conversation::last_answer_note(detail));
    call_model(state, false, out);
}

/// Repeats a turn that failed or was lost. A repetition is no new step.
pub(super) fn ask_again(state: &mut RunState, out: &mut Effects) {
    call_model(state, !state.guards.last_turn, out);
}

pub(super) const fn steps_left(state: &RunState) -> bool {
    state.counters.steps < state.abilities.limits.steps
}

/// The most tokens of the conversation, and those after trimming.
pub(super) fn budget(state: &RunState) -> (u64, u64) {
    let found = state.abilities.searched.as_ref().map_or(0, |index| index.tokens_of(&state.found));
    let tools = state.abilities.tool_tokens.saturating_add(found).min(MOST_TOOL_TOKENS);
    let share = |percent: u64| {
        (state.abilities.limits.context_tokens.saturating_mul(percent) / 100).saturating_sub(tools)
    };
    let note = state.earlier.note().map_or(0, |note| conversation::text_tokens(&note));
    (share(FILL.0).saturating_sub(note), share(FILL.1).saturating_sub(note))
}

fn call_model(state: &mut RunState, tools: bool, out: &mut Effects) {
    let (most, target) = budget(state);
    let keep = state.abilities.limits.keep_messages;
    let dropped = conversation::trim(&mut state.messages, most, target, keep);
    condense::left_out(state, &dropped);
    state.counters.turns = state.counters.turns.wrapping_add(1);
    let turn = state.counters.turns;
    state.phase = Phase::Model { turn };
    if state.condensing.is_some() {
        out.push(Effect::CallModel { turn, tools: false });
        return;
    }
    state.text.begin_turn(state.abilities.answer, !tools);
    out.emit(EventKind::TurnStarted);
    out.push(Effect::CallModel { turn, tools });
}
