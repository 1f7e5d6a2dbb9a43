//! The objects of a tool server with pods of its own.

use caipe_crds::names;

use super::context::{BuildContext, Member};
use super::meta::Component;
use super::service::{self, MCP_PORT};
use super::sidecars::Tool;
use super::{BuildError, ToolServerObjects, deployment, network_policy, pod, probes, template};

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
    let mut pod = pod::pod(cx, vec![container], vec![pod::empty("tmp")]);
    probes::set_termination_period(&mut pod, probes::SHORTEST_GRACE);
    let template = template::template(cx, component, pod, None, None)?;
    let mut deployment = deployment::of(cx, &name, component, template);
    // One replica, because sessions are in its memory.
    deployment.spec.replicas = Some(1);
    Ok(ToolServerObjects {
        agent: tool.agent.clone(),
        name: tool.server.clone(),
        service: service::of_tool_server(cx, &name, component, tool.port),
        network_policy: network_policy::of_tool_server(cx, member, &name, tool),
        deployment,
    })
}
