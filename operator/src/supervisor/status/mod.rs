//! What is reported of a supervisor: measured from its pods, never assumed. Pure.
//!
//! kstatus-compatible: `Ready` is always there, `Reconciling` and `Stalled` only while true. `Ready` means that every
//! supervisor pod answers and says that every enabled agent is usable.

mod agents;
mod conditions;

use std::collections::{BTreeMap, BTreeSet};

use caipe_crds::CaipeSupervisorStatus;
use caipe_crds::report::Report;
use caipe_crds::resource::status::{AgentPhase, AgentPlacement, AgentStatus};
use jiff::Timestamp;

use super::decision::Decision;
use super::migration::PendingMigration;
use crate::cache::Workload;
use crate::references::Missing;

pub use conditions::{Reason, Verdict};

/// What is known when the status is made.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The resource's generation.
    pub generation: i64,
    /// What was reported before.
    pub before: Option<&'a CaipeSupervisorStatus>,
    /// Why the resource cannot be made real as it is, if it cannot.
    pub refusal: Option<&'a Refusal>,
    /// What was decided, if the resource is valid.
    pub decision: Option<&'a Decision>,
    /// Agents that are not yet where the resource wants them.
    pub held: &'a BTreeMap<String, PendingMigration>,
    /// Agents whose old home finishes what it began, with the Deployment's name.
    pub draining: &'a BTreeSet<String>,
    /// What is referred to and not there.
    pub missing: &'a Missing,
    /// The supervisor's Deployment.
    pub supervisor: Option<&'a Workload>,
    /// What each supervisor pod says; none for one that does not say anything.
    pub reports: &'a [Option<&'a Report>],
    /// What is wrong with the supervisor's pods.
    pub trouble: Option<&'a str>,
    /// What is wrong with the pods that run for an agent alone.
    pub remotes: &'a BTreeMap<String, RemoteFacts>,
    /// Now, for transitions.
    pub now: Timestamp,
}

/// What is known of the pods that run for an agent alone: its own, if it is remote, and its tool servers'.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteFacts {
    /// Why it does not get on, if Kubernetes has given up.
    pub failure: Option<String>,
    /// What is wrong with its pods.
    pub trouble: Option<String>,
    /// Whether one of its pods is ready.
    pub ready: bool,
    /// What is wrong with the pods of its tool servers.
    pub tools: Option<String>,
}

/// Why a resource cannot be made real as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One word.
    pub reason: Reason,
    /// What to do about it.
    pub message: String,
}

/// The status.
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
    CaipeSupervisorStatus {
        observed_generation: facts.generation,
        epoch: running.map(|(epoch, _)| i64::try_from(epoch).unwrap_or(i64::MAX)),
        spec_hash: running.and_then(|(_, hash)| hash.map(str::to_owned)),
        conditions: conditions::conditions(verdict, before, facts.generation, facts.now),
        agents_ready: Some(format!("{ready}/{all}")),
        remote_agents: Some(i32::try_from(remote.count()).unwrap_or(i32::MAX)),
        agents,
    }
}

/// Whether the agent is only listed because an old home of it has not ended.
fn is_leaving(facts: &Facts<'_>, agent: &AgentStatus) -> bool {
    let known = facts.decision.map(|decision| &decision.wanted.agents);
    known.is_some_and(|known| known.iter().all(|wanted| wanted.name != agent.name))
}

/// The oldest epoch that some pod runs, with its hash; what was reported before while no pod says anything.
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

/// Whether two statuses say the same. Latencies and times of probes are told when something else is.
pub fn same(left: &CaipeSupervisorStatus, right: &CaipeSupervisorStatus) -> bool {
    let plain = |status: &CaipeSupervisorStatus| {
        let mut status = status.clone();
        for agent in &mut status.agents {
            (agent.latency_ms, agent.last_probe_time) = (None, None);
            agent.active_tasks = agent.active_tasks.map(|tasks| tasks.min(1));
        }
        status
    };
    plain(left) == plain(right)
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
