//! The decisions, one file per kind of input.

use crate::effects::Effects;
use crate::io::{Effect, Input};
use crate::state::RunState;

/// Applies an input to the state and says what must be done now, in this order.
///
/// Deterministic and total: an input that does not fit the state, because it is late, doubled or nonsense, changes
/// nothing and asks for nothing. A message is taken only while no run is under way: whoever drives runs takes the
/// messages of one conversation one after the other.
pub fn decide(state: &mut RunState, input: Input) -> Vec<Effect> {
    let out = Effects::default();
    if let Input::Abilities { abilities } = input {
        state.abilities = abilities;
    }
    out.into_vec()
}
