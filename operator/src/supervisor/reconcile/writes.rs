//! The writes of the fourth step: objects, annotations of pods, and the removal of orphans.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::{Due, Reconciler, applier, earliest};
use crate::cache::Child;
use crate::compact_map::CompactMap;
use crate::kind::Kind;
use crate::metrics::labels::MigrationStage;
use crate::supervisor::apply::Applier;
use crate::supervisor::decision::Decision;
use crate::supervisor::error::Error;
use crate::supervisor::key_secrets;
use crate::supervisor::kubelet_refresh::{self, Refresh, StalePod};
use crate::supervisor::manifest::Manifest;
use crate::supervisor::observation::Observation;
use crate::supervisor::orphans::{self, Act};

/// The result of the writes.
pub(super) struct Written {
    pub(super) wrote: bool,
    pub(super) draining: BTreeSet<String>,
    pub(super) due: Due,
}

impl Reconciler<'_> {
    /// Applies the objects, except the Deployments in `pending` and kinds that the operator may not read.
    pub(super) async fn apply(
        &mut self,
        manifests: &[Manifest],
        pending: &BTreeSet<String>,
        decision: &Decision,
    ) -> Result<Written, Error> {
        let applier = applier(self.cx, &self.key, &self.uid);
        if let Some(keys) = &self.state.keys {
            key_secrets::derived(&applier, &self.observation.observed, keys, manifests).await?;
        }
        let is_due = |it: &&Manifest| {
            self.may_write(it.kind) && (it.kind != Kind::Deployment || !pending.contains(&it.name))
        };
        let due: Vec<&Manifest> = manifests.iter().filter(is_due).collect();
        let after = applier.apply(&due, &self.observation.observed, &self.state).await?;
        let before = |child: &Child| self.observation.observed.child(child.kind, &child.name);
        let wrote = after.iter().any(|child| before(child) != Some(child));
        self.state.applied(&after);
        let epoch = decision.spec.epoch;
        let (refreshed, again) =
            refresh_kubelets(&applier, &self.observation, &mut self.state.refreshed, epoch).await?;
        if refreshed {
            self.cx.prober.probe_now(&self.key);
        }
        let (draining, due) = self.remove_orphans(&applier, manifests, decision).await?;
        let due = earliest(due, again);
        Ok(Written { wrote: wrote || refreshed, draining, due })
    }

    /// Whether the operator can read the objects of the kind, and so knows what to write.
    fn may_write(&self, kind: Kind) -> bool {
        kind != Kind::PodDisruptionBudget || self.unreadable_budgets.is_none()
    }

    /// Deletes orphans that are due; returns the agents that still drain.
    async fn remove_orphans(
        &self,
        applier: &Applier<'_>,
        manifests: &[Manifest],
        decision: &Decision,
    ) -> Result<(BTreeSet<String>, Due), Error> {
        let wanted: BTreeSet<(Kind, &str)> = manifests.iter().map(|it| (it.kind, it.name.as_str())).collect();
        let used = self.observation.use_of(decision.spec.epoch);
        let deadline = Duration::from_secs(u64::from(self.cx.defaults.drain_seconds));
        let (mut draining, mut due) = (BTreeSet::new(), None);
        for child in self.observation.observed.children.values() {
            let is_wanted = wanted.contains(&(child.kind, &*child.name));
            if is_wanted
                || child.deleting
                || !self.may_write(child.kind)
                || child.owner.controller.as_deref() != Some(self.uid.as_str())
            {
                continue;
            }
            match orphans::act(child, &used, deadline, self.now) {
                Act::Remove(why) => {
                    applier.remove(child).await?;
                    self.cx.reporter.removed(self.resource, child, why);
                    if child.kind == Kind::Deployment && child.agent().is_some() {
                        self.cx.metrics.migrated(MigrationStage::Finished);
                    }
                }
                Act::Mark => applier.mark(child.kind, &child.name, Some(&self.now.to_string())).await?,
                Act::Wait if child.agent().is_none() || child.kind == Kind::PersistentVolumeClaim => continue,
                Act::Wait => {}
            }
            due = Some(deadline.min(Duration::from_secs(30)));
            draining.extend(child.agent().filter(|_| child.kind == Kind::Deployment).map(str::to_owned));
        }
        Ok((draining, due))
    }
}

/// Makes the kubelets refresh pods that do not run the epoch; returns whether any was annotated, and when to check
/// again.
async fn refresh_kubelets(
    applier: &Applier<'_>,
    observation: &Observation,
    refreshed: &mut CompactMap<Box<str>, Instant>,
    epoch: u64,
) -> Result<(bool, Due), Error> {
    let (mut wrote, mut due) = (false, None);
    let before = std::mem::take(refreshed);
    for (name, pod) in observation.supervisors() {
        let runs =
            observation.results.get(name).and_then(|view| view.report.as_ref()).map(|report| report.epoch);
        if runs == Some(epoch) {
            continue;
        }
        let last = before.get(name).copied();
        let since = last.map(|last| last.elapsed());
        let pod = StalePod { annotation: pod.epoch.as_deref(), since, answers: runs.is_some() };
        let (again, last) = match kubelet_refresh::refresh(epoch, pod) {
            Refresh::Now(text) => {
                applier.refresh_kubelet(name, &text).await?;
                wrote = true;
                (Some(kubelet_refresh::FIRST), Some(Instant::now()))
            }
            Refresh::Later(rest) => (Some(rest), last),
            Refresh::Never => (None, last),
        };
        due = earliest(due, again);
        if let Some(last) = last {
            refreshed.insert(name.into(), last);
        }
    }
    Ok((wrote, due))
}
