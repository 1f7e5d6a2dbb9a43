//! Builds the objects of a supervisor, one file for each kind. Pure: the same input gives the same bytes.

mod agent;
mod config_map;
mod context;
mod deployment;
mod disruption_budget;
mod egress;
mod env;
mod error;
pub(in crate::supervisor) mod merge;
mod meta;
mod network_policy;
mod network_settings;
mod pod;
mod probes;
mod restrictions;
pub(in crate::supervisor) mod secrets;
mod service;
mod service_account;
mod sidecars;
mod slack_bot;
mod template;
mod tool_server;
mod volume_claim;

use caipe_crds::names;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

pub use error::BuildError;

use super::decision::BuildInputs;
use context::BuildContext;
use meta::Component;

/// All applied objects of a supervisor. The Secret with its keys is created once and not part of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Objects {
    /// The account of the supervisor's pods; none if the resource names an existing one.
    pub service_account: Option<ServiceAccount>,
    /// The rendered spec.
    pub spec: ConfigMap,
    /// The volume of conversations; none if the user has made it.
    pub data: Option<PersistentVolumeClaim>,
    /// The endpoint of the supervisor.
    pub service: Service,
    /// The allowed connections of the supervisor; none if policies are disabled.
    pub network_policy: Option<NetworkPolicy>,
    /// How many pods may be evicted at a time; none for a single pod.
    pub disruption_budget: Option<PodDisruptionBudget>,
    /// The supervisor.
    pub deployment: Deployment,
    /// The remote agents that the operator runs.
    pub agents: Vec<AgentObjects>,
    /// The tool servers with pods of their own.
    pub tool_servers: Vec<ToolServerObjects>,
    /// The Slack bot, if the resource has one.
    pub slack_bot: Option<SlackBotObjects>,
}

/// The objects of a remote agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentObjects {
    pub name: String,
    pub service_account: Option<ServiceAccount>,
    /// The spec with this agent alone; none for another image.
    pub spec: Option<ConfigMap>,
    /// The volume of its workspace; none without one, or if the user has made it.
    pub data: Option<PersistentVolumeClaim>,
    pub service: Service,
    pub network_policy: Option<NetworkPolicy>,
    /// The agent itself.
    pub deployment: Deployment,
}

/// The objects of a tool server with pods of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolServerObjects {
    pub agent: String,
    pub name: String,
    pub service_account: Option<ServiceAccount>,
    pub service: Service,
    pub network_policy: Option<NetworkPolicy>,
    /// The server itself.
    pub deployment: Deployment,
}

/// The objects of the Slack bot.
#[derive(Debug, Clone, PartialEq)]
pub struct SlackBotObjects {
    pub service_account: Option<ServiceAccount>,
    /// The volume of its database; none if it lives as long as the pod, or the user has made it.
    pub data: Option<PersistentVolumeClaim>,
    /// The endpoint of events; none in Socket Mode.
    pub service: Option<Service>,
    pub network_policy: Option<NetworkPolicy>,
    /// The bot itself.
    pub deployment: Deployment,
}

/// Builds the wanted objects. Draining agents have none: what runs of them is left unchanged.
///
/// # Errors
/// See [`BuildError`]. Nothing may be changed then.
pub fn objects(wanted: &BuildInputs<'_>) -> Result<Objects, BuildError> {
    let (cx, spec) = (BuildContext::new(*wanted)?, &wanted.decision.spec);
    let objects = Objects {
        service_account: service_account::created(
            &cx,
            cx.name,
            Component::Supervisor,
            wanted.resource.spec.service_account.as_ref(),
        ),
        spec: config_map::config_map(&cx, &names::spec(cx.name), Component::Supervisor, spec)?,
        data: volume_claim::of_conversations(&cx),
        service: service::of_supervisor(&cx),
        network_policy: network_policy::of_supervisor(&cx),
        disruption_budget: disruption_budget::of_supervisor(&cx),
        deployment: deployment::deployment(&cx)?,
        agents: cx.remote().map(|member| agent::agent(&cx, member)).collect::<Result<_, _>>()?,
        tool_servers: tool_servers(&cx)?,
        slack_bot: slack_bot::slack_bot(&cx)?,
    };
    restrictions::check(&cx, &objects)?;
    Ok(objects)
}

/// The tool servers of all agents that are hosted, remote or draining.
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
