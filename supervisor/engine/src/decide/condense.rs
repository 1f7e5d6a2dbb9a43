//! What happens to messages that the model does not read any more: they are kept as virtual files and, if the agent condenses, a
//! model summarizes them before the turn.

use std::sync::Arc;

use caipe_model::Message;

use crate::conversation::transcript;
use crate::state::RunState;
use crate::tools::kept::{self, HISTORY};

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
    let is_kept = kept::keep(state, HISTORY, "conversation", &text).is_some();
    state.earlier.left_out(messages, is_kept);
    if state.abilities.limits.condense && !state.guards.last_turn {
        state.condensing = Some(state.earlier.to_summarize(&text));
    }
}
