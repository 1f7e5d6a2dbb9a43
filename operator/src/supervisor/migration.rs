//! Where each agent's home is now: the wanted homes, held back where the new one is not ready yet.
//!
//! An agent moves away once its pod answers, and back once the supervisor's pods have a seat for it; until then its home
//! stays where it was. What is no longer asked finishes what it began (see [`super::orphans`]). Pure.

use std::collections::{BTreeMap, BTreeSet};

use caipe_crds::rendered::Home;
use caipe_crds::{CaipeSupervisor, RenderedSpec};

use super::decision::Decision;

/// The spec that is in the cluster now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CurrentSpec {
    /// Its epoch.
    pub epoch: u64,
    /// Its hash.
    pub hash: String,
    /// The home of each of its agents, in the order of their names.
    homes: Box<[(String, Home)]>,
}

impl CurrentSpec {
    /// Where an agent lives.
    pub fn home(&self, agent: &str) -> Option<&Home> {
        let found = self.homes.binary_search_by(|(name, _)| name.as_str().cmp(agent)).ok()?;
        self.homes.get(found).map(|(_, home)| home)
    }
}

impl From<&RenderedSpec> for CurrentSpec {
    fn from(spec: &RenderedSpec) -> Self {
        let homes = spec.agents.iter().map(|agent| (agent.name.clone(), agent.home.clone()));
        let homes = homes.collect::<BTreeMap<_, _>>().into_iter().collect();
        Self { epoch: spec.epoch, hash: spec.hash.clone(), homes }
    }
}

/// What is known when the homes are decided.
#[derive(Debug, Clone, Copy)]
pub struct MigrationInputs<'a> {
    /// The spec as the resource wants it, epoch 0.
    pub wanted: &'a RenderedSpec,
    /// The agents that have a Deployment of their own while they are remote.
    pub ours: &'a BTreeSet<String>,
    /// The spec in the cluster, if there is one.
    pub current: Option<&'a CurrentSpec>,
    /// The newest epoch that was ever told, in case the spec was deleted by somebody.
    pub reported_epoch: u64,
    /// The remote agents whose Deployment has rolled out and whose card answers.
    pub answering: &'a BTreeSet<String>,
    /// The agents that the supervisor's Deployment has seats for.
    pub hosted: &'a BTreeSet<String>,
    /// Whether that Deployment has rolled out, so that its pods have those seats.
    pub rolled_out: bool,
    /// The agents that have a Deployment now, and since when it only finishes what it began.
    pub deployed: &'a BTreeMap<String, Option<String>>,
}

/// Why an agent is not yet where the resource wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingMigration {
    /// In-process until its own pod answers.
    UntilRemoteAnswers,
    /// Remote until the supervisor's pods have its tool servers and Secrets.
    UntilHosted,
}

/// Decides the homes. Returns why agents are held back, too.
pub fn decide(situation: MigrationInputs<'_>) -> (Decision, BTreeMap<String, PendingMigration>) {
    let mut spec = situation.wanted.clone();
    let mut held = BTreeMap::new();
    for agent in &mut spec.agents {
        if let Some((home, why)) = situation.holds(&agent.name, &agent.home) {
            agent.home = home;
            held.insert(agent.name.clone(), why);
        }
    }
    let spec = situation.numbered(spec);
    let hosted = situation.hosted(&spec);
    let remote = situation.remote(&spec);
    let draining = situation.draining(&remote);
    (Decision { spec, wanted: situation.wanted.clone(), hosted, remote, draining }, held)
}

impl MigrationInputs<'_> {
    /// The home that an agent keeps for now, and why; none if the wanted one is ready.
    fn holds(&self, agent: &str, wanted: &Home) -> Option<(Home, PendingMigration)> {
        if !self.ours.contains(agent) {
            return None;
        }
        let now = self.current?.home(agent)?;
        let why = match (now, wanted) {
            (Home::InProcess {}, Home::Remote { .. }) if !self.answering.contains(agent) => {
                PendingMigration::UntilRemoteAnswers
            }
            (Home::Remote { .. }, Home::InProcess {})
                if !(self.rolled_out && self.hosted.contains(agent)) =>
            {
                PendingMigration::UntilHosted
            }
            _ => return None,
        };
        Some((now.clone(), why))
    }

    /// The spec with its hash, and the epoch that belongs to it: the same as long as nothing in it changes.
    fn numbered(&self, spec: RenderedSpec) -> RenderedSpec {
        let mut spec = spec.sealed();
        let current = self.current.map_or(0, |current| current.epoch);
        let same = self.current.is_some_and(|current| current.hash == spec.hash);
        spec.epoch = if same { current } else { current.max(self.reported_epoch) + 1 };
        spec
    }

    /// The agents that the supervisor's pods must have everything for, and those that they have it for already.
    fn hosted(&self, spec: &RenderedSpec) -> BTreeSet<String> {
        let here = |home: &Home| matches!(home, Home::InProcess {});
        let names = |spec: &RenderedSpec| -> BTreeSet<String> {
            spec.agents.iter().filter(|agent| here(&agent.home)).map(|agent| agent.name.clone()).collect()
        };
        let enabled: BTreeSet<String> = spec.agents.iter().map(|agent| agent.name.clone()).collect();
        let taken = self.hosted.iter().filter(|name| enabled.contains(*name)).cloned();
        names(spec).into_iter().chain(names(self.wanted)).chain(taken).collect()
    }

    /// The agents that have a Deployment and need none any more.
    fn draining(&self, remote: &BTreeSet<String>) -> BTreeMap<String, String> {
        let leaving = self.deployed.iter().filter(|(name, _)| !remote.contains(*name));
        leaving.map(|(name, since)| (name.clone(), since.clone().unwrap_or_default())).collect()
    }

    /// The agents that need a Deployment: those that are remote now, and those that shall be.
    fn remote(&self, spec: &RenderedSpec) -> BTreeSet<String> {
        let away = |spec: &RenderedSpec| -> Vec<String> {
            let remote = spec.agents.iter().filter(|agent| matches!(agent.home, Home::Remote { .. }));
            remote.map(|agent| agent.name.clone()).filter(|name| self.ours.contains(name)).collect()
        };
        away(spec).into_iter().chain(away(self.wanted)).collect()
    }
}

/// The agents that have a Deployment of their own while they are remote: all but those that somebody else runs.
pub fn ours(resource: &CaipeSupervisor, spec: &RenderedSpec) -> BTreeSet<String> {
    let agents = resource.spec.agents();
    let external = |name: &str| agents.iter().any(|agent| agent.name == name && agent.external.is_some());
    spec.agents.iter().map(|agent| agent.name.clone()).filter(|name| !external(name)).collect()
}

/// The seats without those that nobody needs: for when the supervisor's pods are rolled anyway.
pub fn needed_hosted(decision: &Decision) -> BTreeSet<String> {
    let needed = [&decision.spec, &decision.wanted].into_iter().flat_map(|spec| &spec.agents);
    let here = needed.filter(|agent| matches!(agent.home, Home::InProcess {}));
    here.map(|agent| agent.name.clone()).collect()
}

/// The decision for a resource at rest, or of which nothing runs yet: every agent has its wanted placement, and the
/// supervisor's pods host only the in-process agents.
pub fn converged(resource: &CaipeSupervisor, spec: RenderedSpec) -> Decision {
    let ours = ours(resource, &spec);
    let names = |remote: bool| {
        let agents =
            spec.agents.iter().filter(move |agent| matches!(agent.home, Home::Remote { .. }) == remote);
        agents.map(|agent| agent.name.clone()).filter(|name| ours.contains(name)).collect()
    };
    Decision {
        hosted: names(false),
        remote: names(true),
        draining: BTreeMap::new(),
        wanted: spec.clone(),
        spec,
    }
}

#[cfg(test)]
#[path = "migration_tests.rs"]
mod tests;
