//! The effects of a decision so far.

use crate::event::{Emit, EventKind, RunEvent};
use crate::io::Effect;

/// The effects of one decision, in order.
#[derive(Debug, Default)]
pub(crate) struct Effects(Vec<Effect>);

impl Effects {
    pub(crate) fn push(&mut self, effect: Effect) {
        self.0.push(effect);
    }

    pub(crate) fn extend(&mut self, effects: impl IntoIterator<Item = Effect>) {
        self.0.extend(effects);
    }

    pub(crate) fn into_vec(self) -> Vec<Effect> {
        self.0
    }
}

impl Emit for Effects {
    fn emit(&mut self, kind: EventKind) {
        self.0.push(Effect::Emit(RunEvent::own(kind)));
    }
}
