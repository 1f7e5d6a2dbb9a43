//! The objects of a supervisor, one file for each kind. Pure: the same input gives the same bytes.

mod agent;
mod config_map;
mod context;
mod deployment;
mod egress;
mod env;
mod error;
pub(in crate::supervisor) mod merge;
mod meta;
mod network_policy;
mod pod;
mod probes;
pub(in crate::supervisor) mod secrets;
mod service;
mod service_account;
mod sidecars;
mod template;
mod tool_server;
mod volume_claim;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;

pub use config_map::{MAX_SPEC_BYTES, SPEC_KEY};
pub use error::BuildError;

use super::decision::BuildInputs;
use context::BuildContext;

/// Everything that is applied for a supervisor, but for the Secret with its keys, which is made once and never built.
#[derive(Debug, Clone, PartialEq)]
pub struct Objects {
    /// Who the pods are; no token is mounted.
    pub service_account: ServiceAccount,
    /// The rendered spec.
    pub spec: ConfigMap,
    /// The volume of conversations.
    pub data: PersistentVolumeClaim,
    /// Where people reach the supervisor.
    pub service: Service,
    /// Who may talk to the supervisor, and to whom it may.
    pub network_policy: NetworkPolicy,
    /// The supervisor.
    pub deployment: Deployment,
    /// Each agent of ours that runs remotely.
    pub agents: Vec<AgentObjects>,
    /// Each tool server that runs by itself.
    pub tool_servers: Vec<ToolServerObjects>,
}

/// The objects of an agent that runs remotely.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentObjects {
    /// The agent.
    pub name: String,
    /// The spec with this agent alone; none for an image of somebody else.
    pub spec: Option<ConfigMap>,
    /// Where the supervisor reaches it.
    pub service: Service,
    /// Who may talk to it, and to whom it may.
    pub network_policy: NetworkPolicy,
    /// The agent itself.
    pub deployment: Deployment,
}

/// The objects of a tool server that runs by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolServerObjects {
    /// The agent that it is for.
    pub agent: String,
    /// Its name.
    pub name: String,
    /// Where the agent reaches it.
    pub service: Service,
    /// Who may talk to it.
    pub network_policy: NetworkPolicy,
    /// The server itself.
    pub deployment: Deployment,
}

/// The objects that are wanted. Agents that are drained have none here: what runs of them is left as it is.
///
/// # Errors
/// What was decided cannot be built: see [`BuildError`]. Nothing is to be changed then.
pub fn objects(wanted: &BuildInputs<'_>) -> Result<Objects, BuildError> {
    let cx = BuildContext::new(*wanted)?;
    Ok(Objects {
        service_account: service_account::service_account(&cx),
        spec: config_map::of_supervisor(&cx)?,
        data: volume_claim::volume_claim(&cx),
        service: service::of_supervisor(&cx),
        network_policy: network_policy::of_supervisor(&cx),
        deployment: deployment::deployment(&cx)?,
        agents: cx.remote().map(|member| agent::agent(&cx, member)).collect::<Result<_, _>>()?,
        tool_servers: tool_servers(&cx)?,
    })
}

/// Those of agents that have a home: a seat with the supervisor, or a Deployment, be it one that finishes what it began.
fn tool_servers(cx: &BuildContext<'_>) -> Result<Vec<ToolServerObjects>, BuildError> {
    let mut all = Vec::new();
    for member in &cx.members {
        let tools = sidecars::tools(cx, member);
        for tool in tools.iter().filter(|tool| tool.by_itself) {
            all.push(tool_server::tool_server(cx, member, tool)?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
