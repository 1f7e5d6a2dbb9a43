//! What a new specification means for each agent. Pure.

use std::collections::{BTreeMap, BTreeSet};

use caipe_crds::resource::agent_state::AgentPhase;
use caipe_engine::AgentName;

use super::instance_spec::InstanceSpec;

/// The instances that an agent has when a new specification arrives.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ExistingSpecs<'a> {
    /// The instance that takes delegations.
    pub(super) current: Option<&'a InstanceSpec>,
    /// The instance that is being prepared.
    pub(super) next: Option<&'a InstanceSpec>,
}

/// What to do for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanAction {
    /// Keep the current instance, and drop the one that is being prepared.
    Keep,
    /// Continue to prepare the next instance.
    Wait,
    /// Replace the current instance at once; the tool servers, or the connection, stay.
    Replace,
    /// Prepare another instance, and migrate once it is ready.
    Prepare,
    /// Remove the agent.
    Remove,
}

/// The action for each agent: the wanted ones in their order, then those that are removed.
pub(super) fn plan(
    existing: &BTreeMap<AgentName, ExistingSpecs<'_>>,
    wanted: &[InstanceSpec],
) -> Vec<(AgentName, PlanAction)> {
    let names: BTreeSet<AgentName> = wanted.iter().map(InstanceSpec::name).collect();
    let stay = wanted.iter().map(|wanted| {
        let name = wanted.name();
        let action = action(existing.get(&name).copied().unwrap_or_default(), wanted);
        (name, action)
    });
    let removed = existing.keys().filter(|name| !names.contains(*name));
    stay.chain(removed.map(|name| (name.clone(), PlanAction::Remove))).collect()
}

fn action(ExistingSpecs { current, next }: ExistingSpecs<'_>, wanted: &InstanceSpec) -> PlanAction {
    if current == Some(wanted) {
        PlanAction::Keep
    } else if next == Some(wanted) {
        PlanAction::Wait
    } else if current.is_some_and(|old| wanted.shares_tools_with(old) || wanted.is_same_remote_as(old)) {
        PlanAction::Replace
    } else {
        PlanAction::Prepare
    }
}

/// Whether an agent migrates from an instance in the first phase to one in the second: once that one is ready, or at
/// least no worse.
pub(super) const fn migrates(current: Option<AgentPhase>, next: AgentPhase) -> bool {
    match next {
        AgentPhase::Ready => true,
        AgentPhase::Pending | AgentPhase::Draining => false,
        AgentPhase::Degraded => {
            matches!(current, None | Some(AgentPhase::Degraded | AgentPhase::Unreachable))
        }
        AgentPhase::Unreachable => matches!(current, None | Some(AgentPhase::Unreachable)),
    }
}

#[cfg(test)]
#[path = "migration_plan_tests.rs"]
mod tests;
