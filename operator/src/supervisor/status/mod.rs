//! Derives the status of a supervisor from its pods. Pure.
//!
//! Compatible with kstatus: `Ready` is always present, `Reconciling` and `Stalled` only while true. `Ready` means
//! that every supervisor pod responds and reports every enabled agent as usable.

mod agent_checks;
mod agents;
mod conditions;
mod limits;

use std::collections::{BTreeMap, BTreeSet};

use caipe_crds::internal_status::Report;
use caipe_crds::resource::agent_state::{AgentPhase, AgentPlacement};
use caipe_crds::resource::status::AgentStatus;
use caipe_crds::{CaipeSupervisor, CaipeSupervisorStatus, names};
use jiff::Timestamp;
use kube::ResourceExt;

use super::decision::Decision;
use super::migration::PendingMigration;
use crate::cache::Workload;
use crate::labels;
use crate::references::Missing;

pub use conditions::{Reason, Verdict};

/// The inputs of the status.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub resource: &'a CaipeSupervisor,
    /// The resource's generation.
    pub generation: i64,
    pub before: Option<&'a CaipeSupervisorStatus>,
    /// Why the resource cannot be applied, if it cannot.
    pub refusal: Option<&'a Refusal>,
    /// The decision, if the resource is valid.
    pub decision: Option<&'a Decision>,
    /// Agents without their wanted placement.
    pub held: &'a BTreeMap<String, PendingMigration>,
    /// Agents whose old instance drains.
    pub draining: &'a BTreeSet<String>,
    /// The missing references.
    pub missing: &'a Missing,
    /// The supervisor's Deployment.
    pub supervisor: Option<&'a Workload>,
    /// The number of supervisor pods, and of those that are ready.
    pub pods: (usize, usize),
    /// The report of each supervisor pod that receives requests; none for a pod without one.
    pub reports: &'a [Option<&'a Report>],
    /// The reports of pods that are not ready while others are.
    pub starting: &'a [&'a Report],
    /// The reports of the pods of remote agents.
    pub agent_reports: &'a [&'a Report],
    /// The problem of the supervisor's pods.
    pub trouble: Option<&'a str>,
    /// The facts about pods of remote agents and tool servers.
    pub remotes: &'a BTreeMap<String, RemoteFacts>,
    /// The facts about the Slack bot, if the resource has one.
    pub slack: Option<&'a SlackFacts>,
    /// Why a rollout has to wait.
    pub pending_rollout: Option<&'a str>,
    /// Why the operator writes no `PodDisruptionBudget`, if it may not read them.
    pub unreadable_budgets: Option<&'a str>,
    /// The time of transitions.
    pub now: Timestamp,
}

/// Facts about the pods of an agent: its own if it is remote, and those of its tool servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteFacts {
    pub failure: Option<String>,
    /// The problem of its pods.
    pub trouble: Option<String>,
    /// Whether one of its pods is ready.
    pub ready: bool,
    /// The problem of its tool servers' pods.
    pub tools: Option<String>,
}

/// Facts about the Slack bot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlackFacts {
    /// The references that it waits for.
    pub missing: Missing,
    /// Its Deployment.
    pub workload: Option<Workload>,
    /// The problem of its pod.
    pub trouble: Option<String>,
}

/// Why a resource cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason of the condition.
    pub reason: Reason,
    /// The message, with what to do.
    pub message: String,
}

pub fn status(facts: Facts<'_>) -> CaipeSupervisorStatus {
    let agents = agents::agents(&facts);
    let verdict = conditions::verdict(&facts, &agents);
    let before = facts.before.map(|before| before.conditions.as_slice()).unwrap_or_default();
    let enabled = agents.iter().filter(|agent| !is_leaving(&facts, agent));
    let (ready, all) = enabled
        .fold((0, 0), |(ready, all), agent| (ready + usize::from(agent.phase == AgentPhase::Ready), all + 1));
    let remote =
        agents.iter().filter(|agent| agent.placement == AgentPlacement::Remote && !is_leaving(&facts, agent));
    let running = running_epoch(&facts);
    let reports = all_reports(&facts).chain(facts.agent_reports.iter().copied());
    CaipeSupervisorStatus {
        observed_generation: facts.generation,
        epoch: running.map(|(epoch, _)| i64::try_from(epoch).unwrap_or(i64::MAX)),
        spec_hash: running.and_then(|(_, hash)| hash.map(str::to_owned)),
        url: Some(url(facts.resource)),
        keys_secret: keys_secret(&facts),
        replicas: Some(i32::try_from(facts.pods.0).unwrap_or(i32::MAX)),
        ready_replicas: Some(i32::try_from(facts.pods.1).unwrap_or(i32::MAX)),
        selector: Some(selector(&facts.resource.name_any())),
        conditions: conditions::conditions(verdict, before, facts.generation, facts.now),
        agents_ready: Some(format!("{ready}/{all}")),
        remote_agents: Some(i32::try_from(remote.count()).unwrap_or(i32::MAX)),
        agents,
        limits: limits::limits(reports),
    }
}

/// The reports of all supervisor pods.
fn all_reports<'a>(facts: &Facts<'a>) -> impl Iterator<Item = &'a Report> {
    facts.reports.iter().copied().flatten().chain(facts.starting.iter().copied())
}

/// The URL for clients.
fn url(resource: &CaipeSupervisor) -> String {
    let external = resource.spec.card.as_ref().and_then(|card| card.external_url.clone());
    let namespace = resource.namespace().unwrap_or_default();
    external.unwrap_or_else(|| names::url(&resource.name_any(), &namespace, resource.spec.service.port))
}

/// The Secret with the generated keys, once a reconcile has created it.
fn keys_secret(facts: &Facts<'_>) -> Option<String> {
    let exists = facts.decision.map(|_| names::keys(&facts.resource.name_any()));
    exists.or_else(|| facts.before.and_then(|before| before.keys_secret.clone()))
}

/// The labels of a supervisor's pods, as the subresource `scale` has them.
fn selector(name: &str) -> String {
    let labels = [
        (labels::NAME, labels::PRODUCT),
        (labels::INSTANCE, name),
        (labels::COMPONENT, labels::COMPONENT_SUPERVISOR),
    ];
    labels.map(|(label, value)| format!("{label}={value}")).join(",")
}

/// Whether the agent is listed only because its old instance drains.
fn is_leaving(facts: &Facts<'_>, agent: &AgentStatus) -> bool {
    let known = facts.decision.map(|decision| &decision.wanted.agents);
    known.is_some_and(|known| known.iter().all(|wanted| wanted.name != agent.name))
}

/// The oldest epoch that a pod runs, with its hash; without reports, the epoch reported before.
fn running_epoch<'a>(facts: &Facts<'a>) -> Option<(u64, Option<&'a str>)> {
    let reports = facts.reports.iter().flatten();
    let oldest = reports.min_by_key(|report| report.running_epoch);
    let before = facts
        .before
        .and_then(|before| Some((u64::try_from(before.epoch?).ok()?, before.spec_hash.as_deref())));
    oldest.map_or(before, |report| {
        let whole = report.running_epoch == report.epoch;
        let known = before.filter(|(epoch, _)| *epoch == report.running_epoch).and_then(|(_, hash)| hash);
        Some((report.running_epoch, if whole { Some(report.hash.as_str()) } else { known }))
    })
}

/// Whether two statuses are equal, except latencies, times of probes, exact numbers of tasks, and counts of limits that have not
/// doubled.
pub fn same(left: &CaipeSupervisorStatus, right: &CaipeSupervisorStatus) -> bool {
    let plain = |status: &CaipeSupervisorStatus| {
        let mut status = status.clone();
        for agent in &mut status.agents {
            (agent.latency_ms, agent.last_probe_time) = (None, None);
            agent.active_tasks = agent.active_tasks.map(|tasks| tasks.min(1));
        }
        for limit in &mut status.limits {
            limit.count = limit.count.checked_ilog2().map_or(-1, i64::from);
        }
        status
    };
    plain(left) == plain(right)
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
