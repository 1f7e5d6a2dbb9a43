//! The decisions, one file per kind of input.

mod call_results;
mod calls;
mod cancel;
mod compact;
mod condense;
mod delegation_update;
mod failure;
mod finish;
mod form_values;
mod guards;
mod interaction;
mod limit;
mod limits;
mod message;
mod model;
mod model_request;
mod recover;
mod route;
mod tool_limits;
mod turn_calls;
mod workflow;

use crate::effects::Effects;
use crate::io::{Effect, Input};
use crate::state::RunState;

/// Applies an input to the state and returns the effects, in order.
///
/// Deterministic and total: an input that does not fit the state, because it is late, repeated or invalid, changes
/// nothing and has no effect. A message is ignored while a run is under way: the caller sends the messages of one
/// conversation one after the other.
///
/// A new [`Effect::CallModel`] replaces an earlier one that is under way; [`Effect::Finish`] ends all effects under way.
pub fn decide(state: &mut RunState, input: Input) -> Vec<Effect> {
    let mut out = Effects::default();
    match input {
        Input::ModelDelta { turn, delta } => model::delta(state, turn, delta, &mut out),
        Input::Message { message, abilities } => message::begin(state, message, abilities, &mut out),
        Input::Abilities { abilities } => {
            state.abilities = abilities.within_run(state.abilities.is_repeatable);
        }
        Input::ModelFinished { turn, completion } => model::finished(state, turn, completion, &mut out),
        Input::ModelFailed { turn, error } => failure::failed(state, turn, &error, &mut out),
        Input::ToolFinished { call, output, time_ms } => {
            calls::tool_finished(state, &call, (output, time_ms), &mut out);
        }
        Input::ToolProgress { call, agent, text } => {
            calls::tool_progress(state, &call, &agent, text, &mut out);
        }
        Input::CallClient { call } => calls::call_client(state, &call, &mut out),
        Input::Delegate { call, update } => delegation_update::update(state, &call, update, &mut out),
        Input::Decided { decisions } => interaction::apply_decisions(state, &decisions, &mut out),
        Input::Undecided { reason } => interaction::ask_again(state, reason, &mut out),
        Input::Cancel => cancel::cancel(state, &mut out),
        Input::Recovered => recover::recovered(state, &mut out),
        Input::Deadline => cancel::deadline(state, &mut out),
        Input::TimeLeft { seconds } => limits::time_left(state, seconds),
    }
    out.into_vec()
}
