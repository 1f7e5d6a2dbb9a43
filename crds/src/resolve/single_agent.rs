//! One agent for a process of its own (`caipe-supervisor agent NAME`), wherever the resource would run it.

use std::collections::BTreeMap;

use crate::catalogue;
use crate::names::normal;
use crate::placement::SupportedPlacements;
use crate::rendered::{ModelChoice, Placement, RenderedAgent};
use crate::resource::agent::Agent;

use super::{Context, agents, variable_part};

/// The agent of that name and then the agents that it delegates to, or a fault if this program cannot serve it.
pub(super) fn agent(cx: &mut Context<'_>, name: &str, chain: Option<&ModelChoice>) -> Vec<RenderedAgent> {
    let Some(mut agent) = served(cx, name, chain) else { return Vec::new() };
    agent.delegates = agent.delegates.iter().map(|name| normal(name)).collect();
    let path = format!("spec.agents[{}].delegates", agent.name);
    let delegates = agent.delegates.clone();
    let delegates = delegates.iter().filter_map(|delegate| called(cx, &path, delegate, chain));
    let delegates: Vec<RenderedAgent> = delegates.collect();
    [vec![agent], delegates].concat()
}

/// An agent that another one delegates to, which must have an address.
fn called(
    cx: &mut Context<'_>,
    path: &str,
    name: &str,
    chain: Option<&ModelChoice>,
) -> Option<RenderedAgent> {
    let agent = declared(cx, name)?;
    if !agents::enabled(cx, &agent) {
        cx.warn(path, format!("the agent `{name}` is not enabled, so nothing is delegated to it"));
        return None;
    }
    let Some(url) = agents::address(cx, &agent) else {
        let prefix = variable_part(name);
        let message = format!(
            "an agent in a process of its own reaches `{name}` at an address only: set {prefix}_AGENT_URL"
        );
        cx.fault(path, message);
        return None;
    };
    let placement = Placement::Remote { url, headers: agents::token_header(cx, &agent) };
    Some(agents::rendered(cx, &agent, catalogue::of_agent(&agent), placement, chain))
}

fn served(cx: &mut Context<'_>, name: &str, chain: Option<&ModelChoice>) -> Option<RenderedAgent> {
    let agent = declared(cx, name)?;
    let entry = catalogue::of_agent(&agent);
    if !agents::enabled(cx, &agent) {
        let path = format!("${}", agents::switch(&agent.name));
        cx.fault(path, format!("agent `{}` is disabled, by this variable or in the resource", agent.name));
        return None;
    }
    if catalogue::supported_placements(&agent) == SupportedPlacements::RemoteOnly {
        let message = format!(
            "agent `{}` is another program: run that program, or give the agent tool servers (`mcp`)",
            agent.name
        );
        cx.fault(path_of(&agent), message);
        return None;
    }
    let placement = match agents::address(cx, &agent) {
        Some(url) => Placement::Remote { url, headers: BTreeMap::new() },
        None => Placement::InProcess {},
    };
    Some(agents::rendered(cx, &agent, entry, placement, chain))
}

fn declared(cx: &mut Context<'_>, name: &str) -> Option<Agent> {
    let (agents, wanted) = (agents::declared(cx), normal(name));
    if let Some(agent) = agents.iter().find(|agent| agent.name == wanted) {
        return Some(agent.clone());
    }
    // Without a list, every agent of the catalogue is available.
    if cx.resource.spec.agents.is_none()
        && let Some(entry) = catalogue::find(&wanted)
    {
        return Some(Agent::named(&entry.name));
    }
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    cx.fault("spec.agents", format!("there is no agent `{wanted}`: name one of {}", names.join(", ")));
    None
}

fn path_of(agent: &Agent) -> String {
    format!("spec.agents[{}]", agent.name)
}
