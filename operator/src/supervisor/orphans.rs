//! What was made for a supervisor and is no longer wanted: when it goes.
//!
//! What belongs to an agent waits until nothing works there any more, or a deadline; the rest goes at once. A volume
//! is never taken away: what people said is on it, and it goes with the resource. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use caipe_crds::report::Report;
use caipe_crds::resource::status::AgentPlacement;
use jiff::Timestamp;

use crate::cache::{Child, Kind};

/// What is to be done about an object that is no longer wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Note since when it only finishes what it began.
    Mark,
    /// Leave it for now.
    Wait,
    /// Take it away.
    Remove(RemovalReason),
}

/// Why an object goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalReason {
    /// Nothing works there.
    Idle,
    /// It had its time; what it works on is lost.
    Deadline,
    /// Nothing could work there.
    Unused,
}

/// What is known of the work that an agent's old home may still do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Use {
    /// Agents that some supervisor pod still uses at an old home, or may use since it runs an older spec.
    pub by_supervisors: BTreeSet<String>,
    /// Agents whose own pods work on something.
    pub by_themselves: BTreeSet<String>,
    /// Whether every supervisor pod was asked. If not, nothing is known to be idle.
    pub known: bool,
}

/// What is to be done about the object. `now` counts for the deadline.
pub fn act(child: &Child, used: &Use, deadline: Duration, now: Timestamp) -> Act {
    let Some(agent) = &child.agent else { return unbound(child) };
    if !matches!(child.kind, Kind::Deployment) {
        // Services, policies and the like go with the Deployment.
        return if used.may_use(agent) { Act::Wait } else { Act::Remove(RemovalReason::Unused) };
    }
    let Some(since) = child.draining_since.as_deref().and_then(|since| since.parse::<Timestamp>().ok())
    else {
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

fn unbound(child: &Child) -> Act {
    let is_permanent = matches!(child.kind, Kind::PersistentVolumeClaim | Kind::Secret);
    if is_permanent { Act::Wait } else { Act::Remove(RemovalReason::Unused) }
}

impl Use {
    /// From the supervisor pods' reports and the remote agents' own; `epoch` is the spec that all shall run.
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
        let busy = report.draining.iter().filter(|home| home.active_tasks > 0);
        self.by_supervisors.extend(busy.map(|home| home.name.clone()));
    }

    fn may_use(&self, agent: &str) -> bool {
        !self.known || self.by_supervisors.contains(agent) || self.by_themselves.contains(agent)
    }
}

/// How much an old home of an agent still does, for the status.
pub fn work_left(agent: &str, placement: AgentPlacement, reports: &[&Report]) -> u64 {
    let homes = reports.iter().flat_map(|report| &report.draining);
    homes.filter(|home| home.name == agent && home.placement == placement).map(|home| home.active_tasks).sum()
}

#[cfg(test)]
#[path = "orphans_tests.rs"]
mod tests;
