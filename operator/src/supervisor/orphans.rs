//! Decides when orphans are deleted: managed objects that are no longer wanted.
//!
//! Objects of an agent wait until it has drained, or for a deadline; others are deleted at once. The operator
//! deletes no volume, because it holds conversations or files. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use caipe_crds::internal_status::Report;
use caipe_crds::resource::agent_state::AgentPlacement;
use jiff::Timestamp;

use crate::cache::Child;
use crate::kind::Kind;

/// The next action for an orphan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Annotate it as draining.
    Mark,
    Wait,
    /// Delete it.
    Remove(RemovalReason),
}

/// Why an orphan is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalReason {
    Idle,
    /// The deadline has passed; its tasks are lost.
    Deadline,
    Unused,
}

/// The agents whose old instances may have tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Use {
    /// Agents with tasks that a supervisor pod has delegated to an old instance.
    pub by_supervisors: BTreeSet<String>,
    /// Agents whose own pods have tasks.
    pub by_themselves: BTreeSet<String>,
    /// Whether every supervisor pod runs the newest spec and has reported. If not, no agent counts as idle.
    pub known: bool,
}

/// The next action for an orphan.
pub fn act(child: &Child, used: &Use, deadline: Duration, now: Timestamp) -> Act {
    if child.kind == Kind::PersistentVolumeClaim {
        return Act::Wait;
    }
    let Some(agent) = child.agent() else { return without_agent(child) };
    if !matches!(child.kind, Kind::Deployment) {
        // Services and policies are deleted with the Deployment.
        return if used.may_use(agent) { Act::Wait } else { Act::Remove(RemovalReason::Unused) };
    }
    let Some(since) = child.draining_since().and_then(|since| since.parse::<Timestamp>().ok()) else {
        return Act::Mark;
    };
    let past = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    if !used.may_use(agent) {
        Act::Remove(RemovalReason::Idle)
    } else if past >= deadline {
        Act::Remove(RemovalReason::Deadline)
    } else {
        Act::Wait
    }
}

fn without_agent(child: &Child) -> Act {
    if child.kind == Kind::Secret { Act::Wait } else { Act::Remove(RemovalReason::Unused) }
}

impl Use {
    /// From the reports of the supervisor's pods and of remote agents; `epoch` is the newest spec.
    pub fn new<'a>(
        epoch: u64,
        supervisors: impl IntoIterator<Item = Option<&'a Report>>,
        agents: impl IntoIterator<Item = (&'a str, &'a Report)>,
    ) -> Self {
        let mut used = Self { known: true, ..Self::default() };
        for report in supervisors {
            match report {
                Some(report) if report.running_epoch >= epoch => used.add_draining(report),
                _ => used.known = false,
            }
        }
        let busy =
            agents.into_iter().filter(|(_, report)| report.agents.iter().any(|agent| agent.active_tasks > 0));
        used.by_themselves = busy.map(|(name, _)| name.to_owned()).collect();
        used
    }

    fn add_draining(&mut self, report: &Report) {
        let busy = report.draining.iter().filter(|instance| instance.active_tasks > 0);
        self.by_supervisors.extend(busy.map(|instance| instance.name.clone()));
    }

    fn may_use(&self, agent: &str) -> bool {
        !self.known || self.by_supervisors.contains(agent) || self.by_themselves.contains(agent)
    }
}

/// The number of tasks in an agent's old instance.
pub fn work_left(agent: &str, placement: AgentPlacement, reports: &[&Report]) -> u64 {
    let instances = reports.iter().flat_map(|report| &report.draining);
    instances.filter(|it| it.name == agent && it.placement == placement).map(|it| it.active_tasks).sum()
}

#[cfg(test)]
#[path = "orphans_tests.rs"]
mod tests;
