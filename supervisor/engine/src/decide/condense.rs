//! What happens to messages that the model does not read any more: they are kept as virtual files and, if the agent condenses, a
//! model summarizes them before the turn.

use std::sync::Arc;

use caipe_model::Message;

use crate::conversation::transcript;
use crate::file_limits::HISTORY;
use crate::state::RunState;
use crate::tools::overflow;

/// Notes messages that were removed from the conversation.
pub(super) fn left_out(state: &mut RunState, messages: &[Arc<Message>]) {
    if state.guards.last_turn {
        // The last answer waits for no summary.
        state.condensing = None;
    }
    if messages.is_empty() {
        return;
    }
    let text = transcript(messages);
    let is_stored = overflow::store(state, HISTORY, "conversation", &text).is_some();
    state.earlier.left_out(messages, is_stored);
    if state.abilities.limits.condense && !state.guards.last_turn {
        state.condensing = Some(state.earlier.to_summarize(&text));
    }
}
