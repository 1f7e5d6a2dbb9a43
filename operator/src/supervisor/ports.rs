//! Ports of sidecars: all hosted agents share those of the supervisor's pod, and the metrics have one in each pod.

use std::collections::{BTreeMap, BTreeSet};

use caipe_crds::names::METRICS_PORT;
use caipe_crds::resolve::bridge_ports;
use caipe_crds::resource::mcp::{ContainerPlacement, McpServer};
use caipe_crds::{CaipeSupervisor, Fault, RenderedSpec};

use super::decision::{Decision, in_process};

/// Faults for sidecars of different in-process agents on one port, and for those on the port of the metrics.
pub(super) fn faults(resource: &CaipeSupervisor, spec: &RenderedSpec) -> Vec<Fault> {
    let mut taken: BTreeMap<u16, (String, String)> = BTreeMap::new();
    let mut faults = on_the_port_of_the_metrics(resource);
    for agent in in_process(spec) {
        for (server, port) in sidecars(resource, &agent) {
            match taken.get(&port) {
                // A conflict within one agent is a fault in either placement.
                Some((other, theirs)) if *other != agent => {
                    let message = format!(
                        "`{agent}/{server}` and `{other}/{theirs}` both listen on port {port} of the supervisor's pod: \
                         give one another port, or `placement: Service`, or run its agent remotely"
                    );
                    faults.push(Fault::new(format!("spec.agents[{agent}].mcp[{server}]"), message));
                }
                Some(_) => {}
                None => {
                    taken.insert(port, (agent.clone(), server));
                }
            }
        }
    }
    faults
}

fn on_the_port_of_the_metrics(resource: &CaipeSupervisor) -> Vec<Fault> {
    let policy = resource.spec.network_policy.as_ref();
    if policy.is_none_or(|policy| policy.metrics_from.is_none()) {
        return Vec::new();
    }
    let names = resource.spec.agents().iter().map(|agent| &agent.name);
    let sidecars =
        names.flat_map(|agent| sidecars(resource, agent).into_iter().map(move |sidecar| (agent, sidecar)));
    let fault = |(agent, (server, _)): (&String, (String, u16))| {
        let message = format!(
            "port {METRICS_PORT} of the pod serves the metrics, because networkPolicy.metricsFrom is set: give the sidecar \
             another port, or set placement to Service"
        );
        Fault::new(format!("spec.agents[{agent}].mcp[{server}]"), message)
    };
    sidecars.filter(|(_, (_, port))| *port == METRICS_PORT).map(fault).collect()
}

/// The hosted agents whose ports fit into one pod, in this order: running in-process, about to run in-process,
/// formerly in-process. An agent whose port is taken waits, or is dropped.
pub fn hosted_that_fit(resource: &CaipeSupervisor, decision: &Decision) -> BTreeSet<String> {
    let mut taken: BTreeSet<u16> = BTreeSet::new();
    let mut hosted = BTreeSet::new();
    let needed = in_process(&decision.spec).chain(in_process(&decision.wanted));
    for agent in needed.chain(decision.hosted.iter().cloned()) {
        let ports: Vec<u16> = sidecars(resource, &agent).into_iter().map(|(_, port)| port).collect();
        if !hosted.contains(&agent) && ports.iter().all(|port| !taken.contains(port)) {
            taken.extend(ports);
            hosted.insert(agent);
        }
    }
    hosted
}

/// The agent's sidecars with their ports.
fn sidecars(resource: &CaipeSupervisor, name: &str) -> Vec<(String, u16)> {
    let declared = resource.spec.agents().iter().find(|agent| agent.name == name);
    let Some(agent) = declared.filter(|agent| !agent.mcp.is_empty() || agent.identity.is_some()) else {
        // The programs of the catalogue have pods of their own.
        return Vec::new();
    };
    let bridges = bridge_ports::ports(&resource.spec);
    let port = |server: &McpServer| {
        let beside = server.container.as_ref().filter(|it| it.placement == ContainerPlacement::Sidecar);
        let bridge = bridges.get(&(agent.name.clone(), server.name.clone())).copied();
        Some((server.name.clone(), beside.map(|container| container.port).or(bridge)?))
    };
    agent.mcp.iter().filter_map(port).collect()
}
