//! Where a supervisor, an agent and a tool server are reached.

use std::collections::BTreeMap;

use caipe_crds::names::PORT;
use caipe_crds::resource::settings::ServiceKind;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::meta::Component;
use super::scene::Scene;

/// The name of the port on which A2A is spoken.
pub(super) const A2A_PORT: &str = "a2a";
/// The name of a tool server's port.
pub(super) const MCP_PORT: &str = "mcp";
/// Tells agentgateway and kgateway what is spoken; both know it, the newer `agentgateway.dev/…` only one of them.
const A2A_PROTOCOL: &str = "kgateway.dev/a2a";
/// The same for a tool server.
const MCP_PROTOCOL: &str = "kgateway.dev/mcp";

/// Where people reach the supervisor.
pub(super) fn of_supervisor(scene: &Scene<'_>) -> Service {
    let declared = &scene.wanted.resource.spec.service;
    let kind = match declared.kind {
        ServiceKind::ClusterIP => "ClusterIP",
        ServiceKind::NodePort => "NodePort",
        ServiceKind::LoadBalancer => "LoadBalancer",
    };
    let mut service = service(scene, scene.name, Component::Supervisor, a2a(declared.port), kind);
    if !declared.annotations.is_empty() {
        service.metadata.annotations = Some(declared.annotations.clone());
    }
    service
}

/// Where the supervisor reaches an agent.
pub(super) fn of_agent(scene: &Scene<'_>, name: &str, agent: &str) -> Service {
    service(scene, name, Component::Agent(agent), a2a(PORT), "ClusterIP")
}

/// Where an agent reaches a tool server.
pub(super) fn of_tool_server(
    scene: &Scene<'_>,
    name: &str,
    component: Component<'_>,
    number: u16,
) -> Service {
    service(scene, name, component, port(MCP_PORT, number, MCP_PROTOCOL), "ClusterIP")
}

fn a2a(number: u16) -> ServicePort {
    port(A2A_PORT, number, A2A_PROTOCOL)
}

fn port(name: &str, number: u16, protocol: &str) -> ServicePort {
    ServicePort {
        name: Some(name.to_owned()),
        port: i32::from(number),
        target_port: Some(IntOrString::String(name.to_owned())),
        protocol: Some("TCP".to_owned()),
        app_protocol: Some(protocol.to_owned()),
        ..ServicePort::default()
    }
}

fn service(
    scene: &Scene<'_>,
    name: &str,
    component: Component<'_>,
    port: ServicePort,
    kind: &str,
) -> Service {
    let selector: BTreeMap<String, String> = component.selector(scene.name);
    Service {
        metadata: scene.meta(name, component),
        spec: Some(ServiceSpec {
            type_: Some(kind.to_owned()),
            selector: Some(selector),
            ports: Some(vec![port]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
