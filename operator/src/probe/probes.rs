//! The interface of the prober for reconciles.

use super::result::{ProbeResults, Targets};
use crate::key::Key;

/// Probes pods periodically and reports supervisors with changed results through a channel.
pub trait Probes: Send + Sync {
    /// Replaces the probed pods of a supervisor. New pods are probed at once; others keep their results.
    fn watch(&self, key: &Key, targets: Targets);

    /// Stops probing a supervisor's pods.
    fn forget(&self, key: &Key);

    /// Stops all probes: another operator leads.
    fn forget_all(&self);

    /// The results of a supervisor's pods.
    fn results(&self, key: &Key) -> ProbeResults;

    /// Probes all pods of a supervisor at once, for example after a new epoch.
    fn probe_now(&self, key: &Key);
}
