//! What a pass needs of whoever looks at pods.

use super::{Look, Prober, Targets, Views};
use crate::supervisor::key::Key;

/// Looks at pods again and again, and says through a channel whose views have changed.
pub trait Probes: Send + Sync {
    /// Says what to look at for a supervisor from now on. The same again changes nothing.
    fn watch(&self, key: &Key, targets: Targets);

    /// Looks at nothing of it any more.
    fn forget(&self, key: &Key);

    /// Looks at nothing any more: another operator does.
    fn forget_all(&self);

    /// What is known now.
    fn views(&self, key: &Key) -> Views;

    /// Looks at once, since something is about to change.
    fn hurry(&self, key: &Key);
}

impl<L: Look> Probes for Prober<L> {
    fn watch(&self, key: &Key, targets: Targets) {
        self.watch(key, targets);
    }

    fn forget(&self, key: &Key) {
        self.forget(key);
    }

    fn forget_all(&self) {
        self.forget_all();
    }

    fn views(&self, key: &Key) -> Views {
        self.views(key)
    }

    fn hurry(&self, key: &Key) {
        self.hurry(key);
    }
}
