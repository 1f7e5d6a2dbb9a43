//! What a pass sees of a supervisor: the objects around it, and what its pods say. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_crds::catalogue;
use caipe_crds::placement::Forms;
use caipe_crds::report::Report;
use caipe_crds::{CaipeSupervisor, names};
use secrecy::SecretString;

use super::failed_containers::{self, PodOwner};
use super::manifest::Manifest;
use super::orphans::Use;
use super::status::RemoteFacts;
use crate::cache::{Child, Kind, ObservedState, Pod, Workload};
use crate::key::Key;
use crate::labels;
use crate::probe::{Endpoints, PodTarget, ProbeResults, Targets};

/// What a pass sees of a supervisor.
#[derive(Debug)]
pub struct Observation {
    name: String,
    /// The objects around it.
    pub observed: Arc<ObservedState>,
    /// What its pods say.
    pub results: ProbeResults,
}

impl Observation {
    /// Of a supervisor.
    pub fn new(key: &Key, observed: Arc<ObservedState>, results: ProbeResults) -> Self {
        Self { name: key.name().to_owned(), observed, results }
    }

    /// The supervisor's Deployment.
    pub fn deployment(&self) -> Option<&Workload> {
        self.observed.workloads.get(&self.name).map(Arc::as_ref)
    }

    /// The agents that have a Deployment, and since when it only finishes what it began.
    pub fn deployed(&self) -> BTreeMap<String, Option<String>> {
        let deployments = self.observed.children.values().filter(|child| child.kind == Kind::Deployment);
        let of_agent = |child: &Arc<Child>| {
            let agent = child.agent.clone()?;
            let own = child.name == names::agent(&self.name, &agent);
            own.then(|| (agent, child.draining_since.clone()))
        };
        deployments.filter_map(of_agent).collect()
    }

    /// Whether a remote agent has rolled out, and its card answers.
    pub fn answers(&self, agent: &str) -> bool {
        let workload = self.observed.workloads.get(&names::agent(&self.name, agent));
        let mut pods = self.observed.pods.iter().filter(|(_, pod)| pod.agent.as_deref() == Some(agent));
        workload.is_some_and(|workload| workload.rolled_out && workload.available > 0)
            && pods.any(|(name, _)| self.results.get(name).is_some_and(|view| view.card.is_some()))
    }

    /// What may still be at work at old homes; `epoch` is the spec that all shall run.
    pub fn use_of(&self, epoch: u64) -> Use {
        let mut reports: Vec<Option<&Report>> = self.reports();
        let expected = self.observed.workloads.get(&self.name).is_none_or(|workload| workload.replicas > 0);
        // One that ends still finishes its answers, and is not asked any more.
        let ends = self.observed.pods.values().any(|pod| is_supervisor(pod) && pod.deleting);
        if ends || (reports.is_empty() && expected) {
            reports.push(None);
        }
        let agents = self.observed.pods.iter().filter_map(|(name, pod)| {
            Some((pod.agent.as_deref()?, self.results.get(name)?.report.as_ref()?))
        });
        Use::new(epoch, reports, agents)
    }

    /// The supervisor's pods that stay.
    pub fn supervisors(&self) -> impl Iterator<Item = (&String, &Pod)> {
        let pods = self.observed.pods.iter().map(|(name, pod)| (name, pod.as_ref()));
        pods.filter(|(_, pod)| is_supervisor(pod) && !pod.deleting)
    }

    /// Whether a pod that is ready was not looked at yet.
    pub fn is_first(&self) -> bool {
        self.supervisors().any(|(name, pod)| pod.ready && !self.results.contains_key(name))
    }

    /// What each of them says; none for one that says nothing.
    pub fn reports(&self) -> Vec<Option<&Report>> {
        self.supervisors()
            .map(|(name, _)| self.results.get(name).and_then(|view| view.report.as_ref()))
            .collect()
    }

    /// The supervisor's Deployment: what the watch has shown counts only if it is of what was applied.
    pub fn supervisor(&self, manifests: &[Manifest]) -> Option<Workload> {
        let name = &self.name;
        let mut workload = self.deployment()?.clone();
        let child = self.observed.children.get(&(Kind::Deployment, name.clone()));
        let applied = manifests.iter().find(|it| it.kind == Kind::Deployment && it.name == *name);
        let is_current = child.and_then(|child| child.applied.as_ref()) == applied.map(|it| &it.hash);
        workload.rolled_out &= is_current;
        Some(workload)
    }

    /// Which pods are to be looked at, and for what.
    pub fn targets(&self, resource: &CaipeSupervisor, token: Option<SecretString>) -> Targets {
        let pods = self.observed.pods.iter().filter(|(_, pod)| !pod.deleting);
        let target = |(name, pod): (&String, &Arc<Pod>)| {
            let endpoints = match pod.component.as_str() {
                labels::COMPONENT_SUPERVISOR => Endpoints::Status,
                labels::COMPONENT_AGENT if is_foreign(resource, pod.agent.as_deref()?) => Endpoints::Card,
                labels::COMPONENT_AGENT => Endpoints::Both,
                _ => return None,
            };
            Some((name.clone(), PodTarget { ip: pod.ip?, endpoints }))
        };
        Targets { pods: pods.filter_map(target).collect(), token }
    }

    /// How containers that ran have ended, if they are not well again.
    pub fn failed_containers(&self) -> BTreeMap<PodOwner, String> {
        failed_containers::failed_containers(self.observed.pods.values().map(Arc::as_ref))
    }

    /// How the pods are that run for an agent alone, and stay.
    pub fn remotes(&self) -> BTreeMap<String, RemoteFacts> {
        let mut remotes: BTreeMap<String, RemoteFacts> = BTreeMap::new();
        for agent in self.deployed().into_keys() {
            let workload = self.observed.workloads.get(&names::agent(&self.name, &agent));
            let failure = workload.and_then(|workload| workload.failure.clone());
            remotes.insert(agent, RemoteFacts { failure, ..RemoteFacts::default() });
        }
        // How those end that go is nobody's trouble.
        for pod in self.observed.pods.values().filter(|pod| !pod.deleting) {
            let Some(agent) = &pod.agent else { continue };
            let trouble = pod.trouble.as_ref().map(ToString::to_string);
            match pod.component.as_str() {
                labels::COMPONENT_AGENT => {
                    let facts = remotes.entry(agent.clone()).or_default();
                    facts.ready |= pod.ready;
                    facts.trouble = facts.trouble.take().or(trouble);
                }
                labels::COMPONENT_TOOL_SERVER if trouble.is_some() => {
                    let facts = remotes.entry(agent.clone()).or_default();
                    facts.tools = facts.tools.take().or(trouble);
                }
                _ => {}
            }
        }
        remotes
    }
}

fn is_supervisor(pod: &Pod) -> bool {
    pod.component == labels::COMPONENT_SUPERVISOR
}

/// Whether the agent's pod runs somebody else's program, which has a card and nothing else that we know.
fn is_foreign(resource: &CaipeSupervisor, agent: &str) -> bool {
    let declared = resource.spec.agents().iter().find(|it| it.name == agent);
    let own = declared.is_some_and(|it| it.identity.is_some() || !it.mcp.is_empty());
    let remote_only = catalogue::find(agent).is_some_and(|entry| entry.forms() == Forms::RemoteOnly);
    declared.is_some_and(|it| it.image.is_some()) || (remote_only && !own)
}

#[cfg(test)]
#[path = "observation_tests.rs"]
mod tests;
