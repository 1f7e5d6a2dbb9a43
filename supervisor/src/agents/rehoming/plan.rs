//! What a new specification means for each agent. Pure.

use std::collections::{BTreeMap, BTreeSet};

use caipe_crds::resource::status::AgentPhase;
use caipe_engine::AgentName;

use super::blueprint::Blueprint;

/// What an agent has when a new specification comes.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::agents) struct Standing<'a> {
    /// The home that delegations go to.
    pub(in crate::agents) serving: Option<&'a Blueprint>,
    /// The home that was being made ready for it.
    pub(in crate::agents) next: Option<&'a Blueprint>,
}

/// What is to be done for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agents) enum Act {
    /// Nothing: it has what it shall have. Whatever else was being made ready is given up.
    Keep,
    /// Go on making ready what is being made ready.
    Wait,
    /// Change its words, model or bounds at once; its tool servers, or its connection, stay as they are.
    Refit,
    /// Make another home ready, and move when it is.
    Prepare,
    /// Ask it no more.
    Remove,
}

/// What is to be done, agent by agent: those that are wanted in their order, then those that are not any more.
pub(in crate::agents) fn plan(
    standing: &BTreeMap<AgentName, Standing<'_>>,
    wanted: &[Blueprint],
) -> Vec<(AgentName, Act)> {
    let names: BTreeSet<AgentName> = wanted.iter().map(Blueprint::name).collect();
    let stay = wanted.iter().map(|wanted| {
        let name = wanted.name();
        let act = act(standing.get(&name).copied().unwrap_or_default(), wanted);
        (name, act)
    });
    let go = standing.keys().filter(|name| !names.contains(*name)).map(|name| (name.clone(), Act::Remove));
    stay.chain(go).collect()
}

fn act(Standing { serving, next }: Standing<'_>, wanted: &Blueprint) -> Act {
    if serving == Some(wanted) {
        Act::Keep
    } else if next == Some(wanted) {
        Act::Wait
    } else if serving.is_some_and(|old| wanted.shares_tools_with(old) || wanted.is_same_peer_as(old)) {
        Act::Refit
    } else {
        Act::Prepare
    }
}

/// Whether an agent moves from a home in the first phase to one in the second: once that is ready, or at least as
/// good as what there is.
pub(in crate::agents) const fn moves(serving: Option<AgentPhase>, next: AgentPhase) -> bool {
    match next {
        AgentPhase::Ready => true,
        AgentPhase::Pending | AgentPhase::Draining => false,
        // Nobody is worse off, and a new agent is there at least, if with few tools.
        AgentPhase::Degraded => {
            matches!(serving, None | Some(AgentPhase::Degraded | AgentPhase::Unreachable))
        }
        AgentPhase::Unreachable => matches!(serving, None | Some(AgentPhase::Unreachable)),
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
