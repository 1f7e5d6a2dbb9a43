//! The agents that agents may delegate to: each exists, no chain comes back to an agent, and none is longer than the limit.

use std::collections::BTreeMap;

use crate::names::normal;
use crate::rendered::{Placement, RenderedAgent};
use crate::resource::agent::Agent;

use super::Context;

/// Most agents in a chain of delegations below the supervisor: it delegates to a first agent, that one to a second, and that one to a
/// third.
pub const MOST_LEVELS: usize = 3;

/// Leaves out the delegates that are declared and disabled, with a warning, and checks the others.
pub(super) fn check(cx: &mut Context<'_>, rendered: &mut [RenderedAgent], declared: &[Agent]) {
    let names: Vec<String> = rendered.iter().map(|agent| agent.name.clone()).collect();
    for agent in rendered.iter_mut() {
        let path = path(&agent.name);
        agent.delegates = agent.delegates.iter().map(|name| normal(name)).collect();
        agent.delegates.sort();
        agent.delegates.dedup();
        agent.delegates.retain(|name| names.contains(name) || left_out(cx, &path, name, declared));
    }
    let by_name: BTreeMap<&str, &RenderedAgent> =
        rendered.iter().map(|agent| (agent.name.as_str(), agent)).collect();
    for agent in rendered.iter() {
        check_reach(cx, agent, &by_name);
        if let Some(fault) = chain_fault(&mut vec![&agent.name], &by_name) {
            cx.fault(path(&agent.name), fault);
        }
    }
}

fn path(agent: &str) -> String {
    format!("spec.agents[{agent}].delegates")
}

/// Reports a delegate that is not enabled; false, so that it is left out.
fn left_out(cx: &mut Context<'_>, path: &str, name: &str, declared: &[Agent]) -> bool {
    if declared.iter().any(|agent| agent.name == name) {
        cx.warn(path, format!("the agent `{name}` is not enabled, so nothing is delegated to it"));
    } else {
        cx.fault(
            path,
            format!("there is no agent `{name}`: correct the name, or add the agent to spec.agents"),
        );
    }
    false
}

/// Checks that a remote agent can reach its delegates, and that the supervisor knows who decides for them.
fn check_reach(cx: &mut Context<'_>, agent: &RenderedAgent, by_name: &BTreeMap<&str, &RenderedAgent>) {
    if agent.placement == (Placement::InProcess {}) {
        return;
    }
    for delegate in agent.delegates.iter().filter_map(|name| by_name.get(name.as_str())) {
        let (name, own) = (&delegate.name, &agent.name);
        if delegate.placement == (Placement::InProcess {}) {
            let message = format!(
                "`{own}` is remote and cannot reach `{name}`, which runs in the supervisor's process: place both alike, or `{name}` remotely"
            );
            cx.fault(path(own), message);
        }
        if delegate.approvers != agent.approvers {
            let message = format!(
                "`{own}` is remote, and its approvers would decide the calls of `{name}`: give both the same approvers, or place `{own}` in-process"
            );
            cx.fault(path(own), message);
        }
    }
}

/// The first chain from the last of these agents that comes back to one of them, or is too long.
fn chain_fault<'a>(
    chain: &mut Vec<&'a str>,
    by_name: &BTreeMap<&'a str, &'a RenderedAgent>,
) -> Option<String> {
    let delegates = &by_name.get(chain.last()?)?.delegates;
    for name in delegates {
        let is_known = chain.contains(&name.as_str());
        chain.push(name);
        let shown = || chain.join(" -> ");
        if is_known {
            // The cycle is reported for each agent in it, and for no other.
            return (chain.first() == chain.last())
                .then(|| format!("{} is a cycle: an agent must not get its own task back", shown()));
        }
        if chain.len() > MOST_LEVELS {
            return Some(format!("{} is too deep: a chain has at most {MOST_LEVELS} agents", shown()));
        }
        let fault = chain_fault(chain, by_name);
        if fault.is_some() {
            return fault;
        }
        chain.pop();
    }
    None
}

#[cfg(test)]
#[path = "delegates_tests.rs"]
mod tests;
