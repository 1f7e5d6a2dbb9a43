//! The objects of a tool server with pods of its own.

use caipe_crds::names;

use super::context::{BuildContext, Member};
use super::meta::Component;
use super::service::{self, MCP_PORT};
use super::sidecars::Tool;
use super::template::Patch;
use super::{
    BuildError, ToolServerObjects, deployment, network_policy, pod, probes, service_account, template,
};

pub(super) fn tool_server(
    cx: &BuildContext<'_>,
    member: &Member<'_>,
    tool: &Tool,
) -> Result<ToolServerObjects, BuildError> {
    let name = names::tool_server(cx.name, &tool.agent, &tool.server);
    let component = Component::ToolServer { agent: &tool.agent, server: &tool.server };
    let mut container = tool.container(cx, "tool-server", MCP_PORT, "tmp");
    probes::probe_port(&mut container, MCP_PORT);
    probes::delay_termination(&mut container);
    let account = service_account::name(tool.service_account.as_ref(), &name);
    let bridge = tool.bridge(cx)?;
    let volumes = [vec![pod::empty("tmp")], bridge.volumes].concat();
    let mut pod = pod::pod(cx, account, vec![container], volumes);
    // The account has no token by itself, so that no other pod gets one by naming it.
    pod.automount_service_account_token = Some(tool.uses_cluster_api);
    pod.init_containers = (!bridge.init_containers.is_empty()).then_some(bridge.init_containers);
    probes::set_termination_period(&mut pod, probes::SHORTEST_GRACE);
    let path = || format!("spec.agents[{}].mcp[{}].container.podTemplate", tool.agent, tool.server);
    let own = tool.pod_template.as_ref().map(|patch| Patch { path: path(), patch });
    let template = template::template(cx, component, pod, None, own)?;
    let deployment = deployment::of(cx, &name, component, tool.replicas.unwrap_or(1), template);
    Ok(ToolServerObjects {
        agent: tool.agent.clone(),
        name: tool.server.clone(),
        service_account: service_account::created(cx, &name, component, tool.service_account.as_ref()),
        service: service::of_tool_server(cx, &name, component, tool),
        network_policy: network_policy::of_tool_server(cx, member, &name, tool),
        deployment,
    })
}
