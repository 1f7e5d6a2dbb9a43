//! The model's turns.

use std::collections::HashSet;
use std::sync::Arc;

use caipe_model::{Completion, FinishReason, Message, Part, Role, ToolCall};

use crate::budget::LimitKind;
use crate::conversation;
use crate::effects::Effects;
use crate::event::{Emit, EventKind};
use crate::io::ModelDelta;
use crate::state::{Phase, RunState};
use crate::tools::is_response;

use super::finish::{self, Cause};
use super::{model_request, turn_calls};

/// What the model reads after an empty turn.
const EMPTY_TURN: &str = "[Reminder] Your last turn was empty. Call a tool, or write the answer.";

/// Applies a piece of the turn under way.
pub(super) fn delta(state: &mut RunState, turn: u32, delta: ModelDelta, out: &mut Effects) {
    if state.phase != (Phase::Model { turn }) || state.condensing.is_some() {
        return;
    }
    match delta {
        ModelDelta::Text { text } => state.text.push(text, out),
        ModelDelta::CallStart { id, name } => state.text.begin_call(&id, is_response(&name), out),
        ModelDelta::CallArguments { id, text } => state.text.push_arguments(&id, &text, out),
    }
}

/// Applies the complete turn: starts its calls, or ends the run.
pub(super) fn finished(state: &mut RunState, turn: u32, completion: Completion, out: &mut Effects) {
    if state.phase != (Phase::Model { turn }) {
        return;
    }
    let Completion { mut message, reason, usage, model } = completion;
    state.counters.usage += usage;
    state.counters.spent.add_turn(&state.abilities.budget, &model, usage);
    // The turn succeeded, so the next failure may be handled again. The limit of steps bounds the repetitions.
    (state.guards.trimmed, state.guards.retried) = (false, false);
    if state.condensing.take().is_some() {
        state.earlier.summarized(&message.plain_text());
        return model_request::ask_again(state, out);
    }
    name_calls(state, &mut message);
    let calls: Vec<ToolCall> = message.tool_calls().cloned().collect();
    let mut content = message.plain_text();
    if reason == FinishReason::Length && calls.is_empty() && !content.trim().is_empty() {
        content.push_str(finish::CUT_OFF);
    }
    state.text.complete(&content, !calls.is_empty(), out);
    if !calls.is_empty() || !content.trim().is_empty() {
        state.messages.push(Arc::new(message));
    }
    if state.guards.last_turn {
        finish::last_answer(state, &calls, &content, out);
    } else if !calls.is_empty() {
        state.counters.empty_turns = 0;
        turn_calls::begin(state, calls, reason == FinishReason::Length, out);
    } else if content.trim().is_empty() {
        empty_turn(state, out);
    } else if let Some(reminder) = state.unverified.reminder() {
        // The text is no answer yet.
        state.text.void(out);
        state.messages.push(Arc::new(Message::text(Role::User, reminder)));
        model_request::ask(state, out);
    } else {
        finish::answered(state, &content, out);
    }
}

/// Asks again after an empty turn, a limited number of times.
fn empty_turn(state: &mut RunState, out: &mut Effects) {
    state.counters.empty_turns += 1;
    state.counters.loops.empty_turns += 1;
    let most = state.abilities.limits.guards.empty_turns;
    if most > 0 && state.counters.empty_turns >= most {
        let detail = "the model said nothing, several times";
        out.emit(EventKind::Limited { limit: LimitKind::EmptyTurns, text: detail.to_owned() });
        return model_request::ask_for_last_answer(state, Some(detail), Cause::NoAnswer, out);
    }
    if most > 0 && state.counters.empty_turns == 1 {
        conversation::append_note(&mut state.messages, EMPTY_TURN);
    }
    model_request::ask(state, out);
}

/// Makes the ids of the calls unique in the conversation, because some models number the calls of each turn from zero or
/// give no ids.
fn name_calls(state: &RunState, message: &mut Message) {
    let mut known: HashSet<String> =
        state.messages.iter().flat_map(|message| message.tool_calls()).map(|call| call.id.clone()).collect();
    let mut next = 0_usize;
    for part in &mut message.parts {
        let Part::ToolCall(call) = part else { continue };
        while call.id.is_empty() || known.contains(&call.id) {
            call.id = format!("call_{}_{next}", state.counters.turns);
            next += 1;
        }
        known.insert(call.id.clone());
    }
}
