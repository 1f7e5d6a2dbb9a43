//! Services of supervisors, agents and tool servers.

use std::collections::BTreeMap;

use caipe_crds::names::{PORT, SLACK_PORT};
use caipe_crds::resource::settings::ServiceKind;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::context::{BuildContext, Member};
use super::meta::Component;
use super::sidecars::Tool;

pub(super) const A2A_PORT: &str = "a2a";
/// The name of a tool server's port.
pub(super) const MCP_PORT: &str = "mcp";
/// The name of the Slack bot's port.
pub(super) const HTTP_PORT: &str = "http";
/// The `appProtocol` of A2A that agentgateway and kgateway both know; only one of them knows `agentgateway.dev/…`.
const A2A_PROTOCOL: &str = "kgateway.dev/a2a";
/// The `appProtocol` of a tool server.
const MCP_PROTOCOL: &str = "kgateway.dev/mcp";

pub(super) fn of_supervisor(cx: &BuildContext<'_>) -> Service {
    let declared = &cx.inputs.resource.spec.service;
    let kind = match declared.kind {
        ServiceKind::ClusterIP => "ClusterIP",
        ServiceKind::NodePort => "NodePort",
        ServiceKind::LoadBalancer => "LoadBalancer",
    };
    let mut service = service(cx, cx.name, Component::Supervisor, a2a(declared.port), kind);
    if !declared.annotations.is_empty() {
        service.metadata.annotations = Some(declared.annotations.clone());
    }
    service
}

pub(super) fn of_agent(cx: &BuildContext<'_>, member: &Member<'_>, name: &str) -> Service {
    let service = service(cx, name, Component::Agent(&member.rendered.name), a2a(PORT), "ClusterIP");
    with_affinity(service, member.declared.replicas)
}

pub(super) fn of_tool_server(
    cx: &BuildContext<'_>,
    name: &str,
    component: Component<'_>,
    tool: &Tool,
) -> Service {
    let service = service(cx, name, component, port(MCP_PORT, tool.port, MCP_PROTOCOL), "ClusterIP");
    with_affinity(service, tool.replicas)
}

/// The endpoint of events over HTTP.
pub(super) fn of_slack_bot(cx: &BuildContext<'_>, name: &str) -> Service {
    service(cx, name, Component::SlackBot, port(HTTP_PORT, SLACK_PORT, "http"), "ClusterIP")
}

/// With several pods, a client stays with one of them, because tasks and sessions are in its memory.
fn with_affinity(mut service: Service, replicas: Option<i32>) -> Service {
    if replicas.is_some_and(|replicas| replicas > 1) {
        service.spec.get_or_insert_default().session_affinity = Some("ClientIP".to_owned());
    }
    service
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
    cx: &BuildContext<'_>,
    name: &str,
    component: Component<'_>,
    port: ServicePort,
    kind: &str,
) -> Service {
    let selector: BTreeMap<String, String> = component.selector(cx.name);
    Service {
        metadata: cx.meta(name, component),
        spec: Some(ServiceSpec {
            type_: Some(kind.to_owned()),
            selector: Some(selector),
            ports: Some(vec![port]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
