//! Holds back the Deployments of a supervisor that has to wait for its rollout.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::{Due, Reconciler};
use crate::supervisor::manifest::Manifest;
use crate::supervisor::rollouts::Permit;

/// Deployments that have to wait for their rollout.
#[derive(Default)]
pub(super) struct PendingRollout {
    pub(super) deployments: BTreeSet<String>,
    pub(super) reason: Option<String>,
    /// When to ask again.
    pub(super) due: Due,
}

impl Reconciler<'_> {
    /// The Deployments that have to wait, because a change of the installation alone would roll their pods.
    pub(super) fn pace(&self, manifests: &[Manifest]) -> PendingRollout {
        let (rollouts, outdated) = (&self.cx.rollouts, self.observation.outdated(manifests));
        let observed = self.resource.status.as_ref().map(|status| status.observed_generation);
        if observed != self.resource.metadata.generation {
            rollouts.forget(&self.key);
            return PendingRollout::default();
        }
        if outdated.is_empty() {
            rollouts.record(&self.key, self.observation.progress());
            return PendingRollout::default();
        }
        match rollouts.request(&self.key, Instant::now()) {
            Permit::Granted => PendingRollout::default(),
            Permit::Wait(reason, again) => {
                PendingRollout { deployments: outdated, reason: Some(reason), due: Some(again) }
            }
        }
    }
}
