//! What a decision has brought about so far.

use crate::event::{EventKind, RunEvent, TextRole};
use crate::io::Effect;

/// The effects of one decision, in the order in which they shall happen.
#[derive(Debug, Default)]
pub(crate) struct Effects(Vec<Effect>);

impl Effects {
    /// Adds an effect.
    pub(crate) fn push(&mut self, effect: Effect) {
        self.0.push(effect);
    }

    /// Adds effects.
    pub(crate) fn extend(&mut self, effects: impl IntoIterator<Item = Effect>) {
        self.0.extend(effects);
    }

    /// Adds an event of the agent itself.
    pub(crate) fn emit(&mut self, kind: EventKind) {
        self.0.push(Effect::Emit(RunEvent::own(kind)));
    }

    /// Adds a piece of text, unless it is empty.
    pub(crate) fn text(&mut self, role: TextRole, text: String) {
        if !text.is_empty() {
            self.emit(EventKind::Text { text, role });
        }
    }

    /// All of them.
    pub(crate) fn into_vec(self) -> Vec<Effect> {
        self.0
    }
}
