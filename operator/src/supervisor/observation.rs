//! What is known about a supervisor in a reconcile: its objects and its probe results. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use caipe_crds::catalogue;
use caipe_crds::internal_status::Report;
use caipe_crds::placement::SupportedPlacements;
use caipe_crds::{CaipeSupervisor, names};
use secrecy::SecretString;

use super::failed_containers::{self, PodOwner};
use super::manifest::Manifest;
use super::orphans::Use;
use super::rollouts::Progress;
use super::status::{RemoteFacts, SlackFacts};
use crate::cache::{Child, ObservedState, Pod, Workload};
use crate::key::Key;
use crate::kind::Kind;
use crate::labels;
use crate::probe::{Endpoints, PodTarget, ProbeResults, Targets};
use crate::references::Missing;

/// The observed objects and probe results of a supervisor.
#[derive(Debug)]
pub struct Observation {
    name: String,
    pub observed: Arc<ObservedState>,
    /// The probe results of its pods.
    pub results: ProbeResults,
}

impl Observation {
    /// The observation of a supervisor.
    pub fn new(key: &Key, observed: Arc<ObservedState>, results: ProbeResults) -> Self {
        Self { name: key.name().to_owned(), observed, results }
    }

    /// The supervisor's Deployment.
    pub fn deployment(&self) -> Option<&Workload> {
        self.observed.workloads.get(self.name.as_str())
    }

    /// Whether the cluster has a rendered spec.
    pub fn has_spec(&self) -> bool {
        self.observed.child(Kind::ConfigMap, &names::spec(&self.name)).is_some()
    }

    /// The agents with a Deployment, and since when it drains.
    pub fn deployed(&self) -> BTreeMap<String, Option<String>> {
        let deployments = self.observed.children.values().filter(|child| child.kind == Kind::Deployment);
        let of_agent = |child: &Child| {
            let agent = child.agent()?;
            let own = *child.name == *names::agent(&self.name, agent);
            own.then(|| (agent.to_owned(), child.draining_since().map(str::to_owned)))
        };
        deployments.filter_map(of_agent).collect()
    }

    /// Whether a remote agent has rolled out and its card responds.
    pub fn answers(&self, agent: &str) -> bool {
        let workload = self.observed.workloads.get(names::agent(&self.name, agent).as_str());
        let mut pods = self.observed.pods.iter().filter(|(_, pod)| pod.agent.as_deref() == Some(agent));
        workload.is_some_and(|workload| workload.rolled_out && workload.available > 0)
            && pods.any(|(name, _)| self.results.get(name.as_ref()).is_some_and(|view| view.card.is_some()))
    }

    /// The agents whose old instances may have tasks; `epoch` is the newest spec.
    pub fn use_of(&self, epoch: u64) -> Use {
        // A pod that never had an address has not run.
        let mut reports: Vec<Option<&Report>> = self
            .supervisors()
            .filter(|(_, pod)| pod.ip.is_some())
            .map(|(name, _)| self.report(name))
            .collect();
        let expected =
            self.observed.workloads.get(self.name.as_str()).is_none_or(|workload| workload.replicas > 0);
        // A terminating pod finishes its tasks and is not probed any more.
        let ends = self.observed.pods.values().any(|pod| is_supervisor(pod) && pod.deleting && !pod.ended);
        if ends || (reports.is_empty() && expected) {
            reports.push(None);
        }
        Use::new(epoch, reports, self.agent_reports())
    }

    /// The reports of the pods of remote agents, with the agents' names.
    pub fn agent_reports(&self) -> impl Iterator<Item = (&str, &Report)> {
        self.observed.pods.iter().filter_map(|(name, pod)| {
            Some((pod.agent.as_deref()?, self.results.get(name.as_ref())?.report.as_ref()?))
        })
    }

    /// The supervisor's pods that are not terminating and have not ended.
    pub fn supervisors(&self) -> impl Iterator<Item = (&str, &Pod)> {
        let pods = self.observed.pods.iter().map(|(name, pod)| (name.as_ref(), pod));
        pods.filter(|(_, pod)| is_supervisor(pod) && !pod.deleting && !pod.ended)
    }

    /// The number of these pods, and of those that are ready.
    pub fn pod_counts(&self) -> (usize, usize) {
        let count = |(all, ready), (_, pod): (&str, &Pod)| (all + 1, ready + usize::from(pod.ready));
        self.supervisors().fold((0, 0), count)
    }

    /// Whether a ready pod has no probe result yet.
    pub fn is_first(&self) -> bool {
        self.supervisors().any(|(name, pod)| pod.ready && !self.results.contains_key(name))
    }

    /// The reports of the pods that receive requests, the ready ones, or of all pods while none is ready; none for a pod
    /// without one. A pod that starts does not change what callers can use.
    pub fn reports(&self) -> Vec<Option<&Report>> {
        let is_any_ready = self.pod_counts().1 > 0;
        let serving = self.supervisors().filter(|(_, pod)| pod.ready || !is_any_ready);
        serving.map(|(name, _)| self.report(name)).collect()
    }

    /// The reports of the pods that are not ready while others are.
    pub fn starting(&self) -> Vec<&Report> {
        let is_any_ready = self.pod_counts().1 > 0;
        let starting = self.supervisors().filter(|(_, pod)| !pod.ready && is_any_ready);
        starting.filter_map(|(name, _)| self.report(name)).collect()
    }

    fn report(&self, pod: &str) -> Option<&Report> {
        self.results.get(pod)?.report.as_ref()
    }

    /// The Deployments whose pods a write would roll only because the installation has changed.
    pub fn outdated(&self, manifests: &[Manifest]) -> BTreeSet<String> {
        let is_outdated = |manifest: &&Manifest| {
            let workload = self.observed.workloads.get(manifest.name.as_str());
            workload.filter(|_| manifest.kind == Kind::Deployment).is_some_and(|workload| {
                workload.replicas > 0
                    && !workload.has_template(manifest.template())
                    && workload.installation != manifest.installation().map(Into::into)
            })
        };
        manifests.iter().filter(is_outdated).map(|manifest| manifest.name.clone()).collect()
    }

    /// The progress of all Deployments but the Slack bot's: its tokens say nothing about the installation.
    pub fn progress(&self) -> Progress {
        let bot = names::slack_bot(&self.name);
        let serving = || self.observed.workloads.iter().filter(|(name, _)| ***name != *bot);
        let workloads = || serving().map(|(_, workload)| workload);
        if workloads().any(|workload| !workload.rolled_out && workload.failure.is_some()) {
            Progress::Failed
        } else if workloads().all(|workload| workload.rolled_out) {
            Progress::Done
        } else {
            Progress::Running
        }
    }

    /// The supervisor's Deployment. It counts as rolled out only if the watch has delivered what was applied.
    pub fn supervisor(&self, manifests: &[Manifest]) -> Option<Workload> {
        let name = &self.name;
        let mut workload = self.deployment()?.clone();
        let child = self.observed.child(Kind::Deployment, name);
        let applied = manifests.iter().find(|it| it.kind == Kind::Deployment && it.name == *name);
        let is_current =
            child.and_then(|child| child.applied.clone()) == applied.map(|it| it.hash.as_str().into());
        workload.rolled_out &= is_current;
        Some(workload)
    }

    /// The pods to probe.
    pub fn targets(&self, resource: &CaipeSupervisor, token: Option<SecretString>) -> Targets {
        let pods = self.observed.pods.iter().filter(|(_, pod)| !pod.deleting);
        let target = |(name, pod): (&Arc<str>, &Pod)| {
            let endpoints = match &*pod.component {
                labels::COMPONENT_SUPERVISOR => Endpoints::Status,
                labels::COMPONENT_AGENT if is_foreign(resource, pod.agent.as_deref()?) => Endpoints::Card,
                labels::COMPONENT_AGENT => Endpoints::Both,
                _ => return None,
            };
            Some((name.to_string(), PodTarget { ip: pod.ip?, endpoints, agent: pod.agent.clone() }))
        };
        Targets { pods: pods.filter_map(target).collect(), token }
    }

    pub fn failed_containers(&self) -> BTreeMap<PodOwner, String> {
        failed_containers::failed_containers(self.observed.pods.values())
    }

    /// The facts about the Slack bot, which waits for the `missing` references.
    pub fn slack(&self, missing: Missing) -> SlackFacts {
        let workload = self.observed.workloads.get(names::slack_bot(&self.name).as_str()).cloned();
        let pods = self.observed.pods.values().filter(|pod| !pod.deleting);
        let mut bots = pods.filter(|pod| *pod.component == *labels::COMPONENT_SLACK_BOT);
        let trouble = bots.find_map(|pod| pod.trouble.as_ref()).map(ToString::to_string);
        SlackFacts { missing, workload, trouble }
    }

    /// The facts about pods of remote agents and tool servers.
    pub fn remotes(&self) -> BTreeMap<String, RemoteFacts> {
        let mut remotes: BTreeMap<String, RemoteFacts> = BTreeMap::new();
        for agent in self.deployed().into_keys() {
            let workload = self.observed.workloads.get(names::agent(&self.name, &agent).as_str());
            let failure = workload.and_then(|workload| workload.failure.as_deref().map(str::to_owned));
            remotes.insert(agent, RemoteFacts { failure, ..RemoteFacts::default() });
        }
        // Failures of terminating pods do not matter.
        for pod in self.observed.pods.values().filter(|pod| !pod.deleting) {
            let Some(agent) = &pod.agent else { continue };
            let trouble = pod.trouble.as_ref().map(ToString::to_string);
            match &*pod.component {
                labels::COMPONENT_AGENT => {
                    let facts = remotes.entry(agent.to_string()).or_default();
                    facts.ready |= pod.ready;
                    facts.trouble = facts.trouble.take().or(trouble);
                }
                labels::COMPONENT_TOOL_SERVER if trouble.is_some() => {
                    let facts = remotes.entry(agent.to_string()).or_default();
                    facts.tools = facts.tools.take().or(trouble);
                }
                _ => {}
            }
        }
        remotes
    }
}

fn is_supervisor(pod: &Pod) -> bool {
    *pod.component == *labels::COMPONENT_SUPERVISOR
}

/// Whether the agent's pod runs another image, which has a card but no status.
fn is_foreign(resource: &CaipeSupervisor, agent: &str) -> bool {
    let declared = resource.spec.agents().iter().find(|it| it.name == agent);
    let own = declared.is_some_and(|it| it.identity.is_some() || !it.mcp.is_empty());
    let remote_only =
        catalogue::find(agent).is_some_and(|entry| entry.placements == SupportedPlacements::RemoteOnly);
    declared.is_some_and(|it| it.image.is_some()) || (remote_only && !own)
}

#[cfg(test)]
#[path = "observation_tests.rs"]
mod tests;
