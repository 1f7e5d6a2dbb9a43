//! Decides the placement of each agent: the wanted one, or the current one while the wanted one is not ready.
//!
//! An agent becomes remote once its pod responds, and in-process once the supervisor's pods host it. Instances that
//! get no more delegations drain (see [`super::orphans`]). Pure.

use std::collections::{BTreeMap, BTreeSet};

use caipe_crds::rendered::Placement;
use caipe_crds::{CaipeSupervisor, RenderedSpec};
use serde::Deserialize;

use super::decision::{Decision, in_process, remote};
use super::rollout_strategy;
use crate::compact_map::CompactMap;
use crate::compact_text::CompactText;

/// The spec in the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CurrentSpec {
    pub epoch: u64,
    pub hash: CompactText,
    /// The placement of each agent; none for an in-process one.
    placements: CompactMap<Box<str>, Option<Box<Placement>>>,
}

static IN_PROCESS: Placement = Placement::InProcess {};

/// The part of a spec that the operator needs to know of one that is in the cluster.
#[derive(Deserialize)]
struct StoredSpec {
    epoch: u64,
    hash: String,
    agents: Vec<StoredAgent>,
}

#[derive(Deserialize)]
struct StoredAgent {
    name: String,
    placement: Placement,
}

impl CurrentSpec {
    /// Reads a spec in the cluster, also one that needs a newer reader: after a downgrade of the operator, epochs still
    /// increase and migrations are still live. None if it cannot be read.
    pub fn read(yaml: &str) -> Option<Self> {
        let StoredSpec { epoch, hash, agents } = serde_saphyr::from_str(yaml).ok()?;
        let agents = agents.into_iter().map(|agent| (agent.name, agent.placement));
        Some(Self { epoch, hash: hash.as_str().into(), placements: compact(agents) })
    }

    pub fn placement(&self, agent: &str) -> Option<&Placement> {
        self.placements.get(agent).map(|placement| placement.as_deref().unwrap_or(&IN_PROCESS))
    }
}

impl From<&RenderedSpec> for CurrentSpec {
    fn from(spec: &RenderedSpec) -> Self {
        let placements = spec.agents.iter().map(|agent| (agent.name.clone(), agent.placement.clone()));
        Self { epoch: spec.epoch, hash: spec.hash.as_str().into(), placements: compact(placements) }
    }
}

fn compact(
    placements: impl Iterator<Item = (String, Placement)>,
) -> CompactMap<Box<str>, Option<Box<Placement>>> {
    let compact = |placement| (placement != IN_PROCESS).then(|| Box::new(placement));
    placements.map(|(agent, placement)| (agent.into(), compact(placement))).collect()
}

/// The inputs of the decision.
#[derive(Debug, Clone, Copy)]
pub struct MigrationInputs<'a> {
    /// The wanted spec, with epoch 0.
    pub wanted: &'a RenderedSpec,
    /// The agents that the operator runs while they are remote.
    pub ours: &'a BTreeSet<String>,
    /// The spec in the cluster, if there is one.
    pub current: Option<&'a CurrentSpec>,
    /// The newest reported epoch, in case the spec was deleted.
    pub reported_epoch: u64,
    /// The remote agents that have rolled out and whose card responds.
    pub answering: &'a BTreeSet<String>,
    /// The agents that the supervisor's Deployment hosts.
    pub hosted: &'a BTreeSet<String>,
    /// Whether all pods of that Deployment host them: those that exist have its newest template.
    pub is_current: bool,
    /// Whether new supervisor pods start before old ones stop.
    pub overlaps: bool,
    /// The agents with a Deployment, and since when it drains.
    pub deployed: &'a BTreeMap<String, Option<String>>,
}

/// Why an agent does not have its wanted placement yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingMigration {
    /// In-process until its pod responds.
    UntilRemoteAnswers,
    /// Remote until the supervisor's pods have its sidecars and Secrets.
    UntilHosted,
}

/// Decides the placements and returns the pending migrations.
pub fn decide(situation: MigrationInputs<'_>) -> (Decision, BTreeMap<String, PendingMigration>) {
    let mut spec = situation.wanted.clone();
    let mut held = BTreeMap::new();
    for agent in &mut spec.agents {
        if let Some((placement, why)) = situation.holds(&agent.name, &agent.placement) {
            agent.placement = placement;
            held.insert(agent.name.clone(), why);
        }
    }
    let spec = situation.numbered(spec);
    let hosted = situation.hosted(&spec);
    let remote = situation.remote(&spec);
    let draining = situation.draining(&remote);
    let overlaps = situation.overlaps;
    (Decision { spec, wanted: situation.wanted.clone(), hosted, remote, draining, overlaps }, held)
}

impl MigrationInputs<'_> {
    /// The placement that an agent keeps for now, with the reason; none if the wanted one is ready.
    fn holds(&self, agent: &str, wanted: &Placement) -> Option<(Placement, PendingMigration)> {
        if !self.ours.contains(agent) {
            return None;
        }
        let now = self.current?.placement(agent)?;
        let why = match (now, wanted) {
            (Placement::InProcess {}, Placement::Remote { .. }) if !self.answering.contains(agent) => {
                PendingMigration::UntilRemoteAnswers
            }
            (Placement::Remote { .. }, Placement::InProcess {})
                if !(self.is_current && self.hosted.contains(agent)) =>
            {
                PendingMigration::UntilHosted
            }
            _ => return None,
        };
        Some((now.clone(), why))
    }

    /// The spec with its hash and epoch. The epoch increases with each change.
    fn numbered(&self, spec: RenderedSpec) -> RenderedSpec {
        let mut spec = spec.sealed();
        let current = self.current.map_or(0, |current| current.epoch);
        let same = self.current.is_some_and(|current| current.hash.is(&spec.hash));
        spec.epoch = if same { current } else { current.max(self.reported_epoch) + 1 };
        spec
    }

    /// The agents that the supervisor's pods must host, and those that they host already.
    fn hosted(&self, spec: &RenderedSpec) -> BTreeSet<String> {
        let still_hosted = self.hosted.iter().filter(|name| spec.agent(name).is_some()).cloned();
        in_process(spec).chain(in_process(self.wanted)).chain(still_hosted).collect()
    }

    /// The agents with a Deployment that they no longer need.
    fn draining(&self, remote: &BTreeSet<String>) -> BTreeMap<String, String> {
        let leaving = self.deployed.iter().filter(|(name, _)| !remote.contains(*name));
        leaving.map(|(name, since)| (name.clone(), since.clone().unwrap_or_default())).collect()
    }

    /// The agents that are or become remote.
    fn remote(&self, spec: &RenderedSpec) -> BTreeSet<String> {
        let agents = remote(spec).chain(remote(self.wanted));
        agents.filter(|name| self.ours.contains(name)).collect()
    }
}

/// The agents that the operator runs while they are remote: all but external ones.
pub fn ours(resource: &CaipeSupervisor, spec: &RenderedSpec) -> BTreeSet<String> {
    let agents = resource.spec.agents();
    let external = |name: &str| agents.iter().any(|agent| agent.name == name && agent.external.is_some());
    spec.agents.iter().map(|agent| agent.name.clone()).filter(|name| !external(name)).collect()
}

/// The hosted agents that are needed, for when the supervisor's pods are rolled anyway.
pub fn needed_hosted(decision: &Decision) -> BTreeSet<String> {
    in_process(&decision.spec).chain(in_process(&decision.wanted)).collect()
}

/// The decision for a resource at rest, or of which nothing runs yet: every agent has its wanted placement, and the
/// supervisor's pods host only the in-process agents.
pub fn converged(resource: &CaipeSupervisor, spec: RenderedSpec) -> Decision {
    let ours = ours(resource, &spec);
    Decision {
        hosted: in_process(&spec).filter(|name| ours.contains(name)).collect(),
        remote: remote(&spec).filter(|name| ours.contains(name)).collect(),
        draining: BTreeMap::new(),
        overlaps: rollout_strategy::overlaps(&spec.store, None),
        wanted: spec.clone(),
        spec,
    }
}

#[cfg(test)]
#[path = "migration_tests.rs"]
mod tests;
