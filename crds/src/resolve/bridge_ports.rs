//! Ports of bridges. In a cluster, a child process with an image runs in a container of its own, behind a bridge that
//! serves it over HTTP on a port of the pod.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::resource::CaipeSupervisorSpec;
use crate::resource::mcp::{ContainerPlacement, McpServer};

use super::Context;

/// The path of a bridge's endpoint.
pub const PATH: &str = "/mcp";
/// The first port of bridges.
const FIRST: u16 = 9100;
/// How many ports there are for bridges: more than a resource can have servers (128 agents with 16 each).
const COUNT: u16 = 4096;

/// The port of each bridge, by agent and server. It is the same in either placement of the agent, and rarely changes when
/// servers are added or removed.
pub fn ports(spec: &CaipeSupervisorSpec) -> BTreeMap<(String, String), u16> {
    let mut taken = declared(spec);
    let mut wanted: Vec<(String, String)> = Vec::new();
    for agent in spec.agents() {
        let bridged = agent.mcp.iter().filter(|server| is_bridged(server));
        wanted.extend(bridged.map(|server| (agent.name.clone(), server.name.clone())));
    }
    wanted.sort();
    let mut ports = BTreeMap::new();
    for (agent, server) in wanted {
        let start = start(&agent, &server);
        let mut free = (0..COUNT).map(|step| FIRST + (start + step) % COUNT);
        if let Some(port) = free.find(|port| !taken.contains(port)) {
            taken.insert(port);
            ports.insert((agent, server), port);
        }
    }
    ports
}

/// Whether the server is a child process with a container of its own in a cluster.
pub fn is_bridged(server: &McpServer) -> bool {
    server.stdio.as_ref().is_some_and(|stdio| stdio.image.is_some())
}

/// The port of a server's bridge, if it has one here.
pub(super) fn port(cx: &Context<'_>, agent: &str, server: &McpServer) -> Option<u16> {
    if !cx.in_cluster() || !is_bridged(server) {
        return None;
    }
    ports(&cx.resource.spec).remove(&(agent.to_owned(), server.name.clone()))
}

/// The ports of the sidecars of all agents: in-process agents share a pod.
fn declared(spec: &CaipeSupervisorSpec) -> BTreeSet<u16> {
    let containers = spec.agents().iter().flat_map(|agent| &agent.mcp);
    let containers = containers.filter_map(|server| server.container.as_ref());
    containers.filter(|it| it.placement == ContainerPlacement::Sidecar).map(|it| it.port).collect()
}

/// The preferred port: a hash of the names, so that a new server rarely changes the ports of others.
fn start(agent: &str, server: &str) -> u16 {
    let digest = Sha256::digest(format!("{agent}\n{server}").as_bytes());
    digest.iter().take(2).fold(0_u16, |sum, byte| (sum << 8) | u16::from(*byte)) % COUNT
}

#[cfg(test)]
#[path = "bridge_ports_tests.rs"]
mod tests;
