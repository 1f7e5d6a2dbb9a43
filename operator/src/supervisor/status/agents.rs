//! The status of each agent, from the reports of the supervisor's pods.

use caipe_crds::internal_status::{AgentReport, DrainingInstance, Report};
use caipe_crds::rendered::Placement;
use caipe_crds::resource::agent_state::{AgentPhase, AgentPlacement};
use caipe_crds::resource::status::AgentStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Facts;
use super::agent_checks::checked;
use crate::supervisor::migration::PendingMigration;
use crate::supervisor::orphans::work_left;

/// Every enabled agent in the order of the resource, then draining ones. Without a valid resource: the agents that
/// run.
pub(super) fn agents(facts: &Facts<'_>) -> Vec<AgentStatus> {
    let reports: Vec<&Report> = facts.reports.iter().flatten().copied().collect();
    let Some(decision) = facts.decision else { return reported_agents(facts, &reports) };
    let mut agents: Vec<AgentStatus> = decision
        .spec
        .agents
        .iter()
        .map(|agent| agent_status(facts, &agent.name, &agent.placement, &reports))
        .collect();
    let gone = facts.draining.iter().filter(|name| decision.spec.agent(name).is_none());
    agents.extend(gone.map(|name| removed(name, &reports)));
    agents
}

fn reported_agents(facts: &Facts<'_>, reports: &[&Report]) -> Vec<AgentStatus> {
    match reports.first() {
        Some(report) => {
            let status = |agent: &AgentReport| from_report(&agent.name, agent, reports);
            report.agents.iter().map(|agent| checked(facts, status(agent))).collect()
        }
        None => facts.before.map(|before| before.agents.clone()).unwrap_or_default(),
    }
}

fn agent_status(facts: &Facts<'_>, name: &str, placement: &Placement, reports: &[&Report]) -> AgentStatus {
    let found: Vec<&AgentReport> =
        reports.iter().flat_map(|report| &report.agents).filter(|agent| agent.name == name).collect();
    let worst = found.iter().max_by_key(|agent| severity(agent.phase));
    let status = worst.map_or_else(|| unreported(name, placement), |agent| from_report(name, agent, reports));
    let mut status = checked(facts, status);
    if let Some(why) = why(facts, name, &status, reports) {
        status.message = Some(why);
    }
    status
}

/// Why an agent is not usable or not at its wanted placement: the cluster's reason before the supervisor's.
fn why(facts: &Facts<'_>, name: &str, status: &AgentStatus, reports: &[&Report]) -> Option<String> {
    let remote = facts.remotes.get(name);
    let trouble = remote.and_then(|remote| remote.trouble.clone().or_else(|| remote.failure.clone()));
    let tools = remote.and_then(|remote| remote.tools.as_ref());
    let tools = tools.map(|trouble| format!("a tool server of it does not start: {trouble}"));
    match facts.held.get(name) {
        Some(PendingMigration::UntilRemoteAnswers) => {
            let waits = "stays in-process until its pod answers".to_owned();
            return Some(trouble.or(tools).map_or(waits.clone(), |trouble| format!("{waits}: {trouble}")));
        }
        Some(PendingMigration::UntilHosted) => {
            return Some(
                "stays remote until the supervisor's pods have its tool servers and Secrets".to_owned(),
            );
        }
        None => {}
    }
    if let Some(trouble) = trouble.filter(|_| status.placement == AgentPlacement::Remote) {
        let answers = status.phase == AgentPhase::Ready && remote.is_some_and(|remote| remote.ready);
        return Some(if answers {
            format!("responds, but another pod of it does not start: {trouble}")
        } else {
            trouble
        });
    }
    if tools.is_some() {
        return tools;
    }
    let old = if status.placement == AgentPlacement::Remote {
        AgentPlacement::InProcess
    } else {
        AgentPlacement::Remote
    };
    let left = work_left(name, old, reports);
    let moved = status.phase == AgentPhase::Ready && (left > 0 || facts.draining.contains(name));
    moved.then(|| format!("its old instance drains: {left} tasks in flight"))
}

/// An agent without a report.
fn unreported(name: &str, placement: &Placement) -> AgentStatus {
    let (placement, endpoint) = match placement {
        Placement::InProcess {} => (AgentPlacement::InProcess, None),
        Placement::Remote { url, .. } => (AgentPlacement::Remote, Some(url.clone())),
    };
    AgentStatus {
        name: name.to_owned(),
        placement,
        phase: AgentPhase::Pending,
        endpoint,
        protocol_version: None,
        latency_ms: None,
        last_probe_time: None,
        active_tasks: None,
        message: Some("no supervisor pod has reported it yet".to_owned()),
        conditions: Vec::new(),
    }
}

fn from_report(name: &str, agent: &AgentReport, reports: &[&Report]) -> AgentStatus {
    let all = reports.iter().flat_map(|report| &report.agents).filter(|other| other.name == name);
    let active: u64 = all.map(|other| other.active_tasks).sum();
    AgentStatus {
        name: name.to_owned(),
        placement: agent.placement,
        phase: agent.phase,
        endpoint: agent.endpoint.clone(),
        protocol_version: agent.protocol_version.clone(),
        latency_ms: agent.latency_ms.map(|latency| i64::try_from(latency).unwrap_or(i64::MAX)),
        last_probe_time: agent.last_probe_time.map(Time),
        active_tasks: Some(i32::try_from(active).unwrap_or(i32::MAX)),
        message: agent.message.clone().or_else(|| waiting(agent)),
        conditions: Vec::new(),
    }
}

/// Why the wanted placement is not ready, unless it is only starting.
fn waiting(agent: &AgentReport) -> Option<String> {
    let next = agent.next.as_ref().filter(|next| next.phase != AgentPhase::Pending)?;
    let because = next.message.as_deref()?;
    Some(format!("keeps its placement until the new one is ready: {because}"))
}

fn removed(name: &str, reports: &[&Report]) -> AgentStatus {
    let instances: Vec<&DrainingInstance> =
        reports.iter().flat_map(|report| &report.draining).filter(|instance| instance.name == name).collect();
    let active: u64 = instances.iter().map(|instance| instance.active_tasks).sum();
    let placement = instances.first().map_or(AgentPlacement::Remote, |instance| instance.placement);
    AgentStatus {
        name: name.to_owned(),
        placement,
        phase: AgentPhase::Draining,
        endpoint: instances.first().and_then(|instance| instance.endpoint.clone()),
        protocol_version: None,
        latency_ms: None,
        last_probe_time: None,
        active_tasks: Some(i32::try_from(active).unwrap_or(i32::MAX)),
        message: Some("removed from the resource; drains".to_owned()),
        conditions: Vec::new(),
    }
}

/// The severity of a phase: of several reports the worst counts.
const fn severity(phase: AgentPhase) -> u8 {
    match phase {
        AgentPhase::Ready => 0,
        AgentPhase::Draining => 1,
        AgentPhase::Pending => 2,
        AgentPhase::Degraded => 3,
        AgentPhase::Unreachable => 4,
    }
}
