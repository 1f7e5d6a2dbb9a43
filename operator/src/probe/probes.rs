//! What a pass needs of whoever looks at pods.

use super::{PodClient, ProbeResults, Prober, Targets};
use crate::key::Key;

/// Looks at pods again and again, and says through a channel whose views have changed.
pub trait Probes: Send + Sync {
    /// Says what to look at for a supervisor from now on. The same again changes nothing.
    fn watch(&self, key: &Key, targets: Targets);

    /// Looks at nothing of it any more.
    fn forget(&self, key: &Key);

    /// Looks at nothing any more: another operator does.
    fn forget_all(&self);

    /// What is known now.
    fn results(&self, key: &Key) -> ProbeResults;

    /// Looks at once, since something is about to change.
    fn probe_now(&self, key: &Key);
}

impl<L: PodClient> Probes for Prober<L> {
    fn watch(&self, key: &Key, targets: Targets) {
        self.watch(key, targets);
    }

    fn forget(&self, key: &Key) {
        self.forget(key);
    }

    fn forget_all(&self) {
        self.forget_all();
    }

    fn results(&self, key: &Key) -> ProbeResults {
        self.results(key)
    }

    fn probe_now(&self, key: &Key) {
        self.probe_now(key);
    }
}
