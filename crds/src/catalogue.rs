//! The catalogue of agents: one data file each in `crds/catalogue/`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::names::normal;
use crate::placement::SupportedPlacements;
use crate::resource::agent::Agent;
use crate::resource::{CaipeSupervisor, CaipeSupervisorSpec};

/// Name and text of each data file, in the order in which agents are listed: upstream's `SINGLE_NODE_AGENTS`, then
/// the others.
const FILES: [(&str, &str); 18] = [
    ("github", include_str!("../catalogue/github.yaml")),
    ("gitlab", include_str!("../catalogue/gitlab.yaml")),
    ("aigateway", include_str!("../catalogue/aigateway.yaml")),
    ("backstage", include_str!("../catalogue/backstage.yaml")),
    ("jira", include_str!("../catalogue/jira.yaml")),
    ("webex", include_str!("../catalogue/webex.yaml")),
    ("argocd", include_str!("../catalogue/argocd.yaml")),
    ("aws", include_str!("../catalogue/aws.yaml")),
    ("pagerduty", include_str!("../catalogue/pagerduty.yaml")),
    ("slack", include_str!("../catalogue/slack.yaml")),
    ("splunk", include_str!("../catalogue/splunk.yaml")),
    ("komodor", include_str!("../catalogue/komodor.yaml")),
    ("confluence", include_str!("../catalogue/confluence.yaml")),
    ("weather", include_str!("../catalogue/weather.yaml")),
    ("netutils", include_str!("../catalogue/netutils.yaml")),
    ("victorops", include_str!("../catalogue/victorops.yaml")),
    ("petstore", include_str!("../catalogue/petstore.yaml")),
    ("jarvis", include_str!("../catalogue/jarvis.yaml")),
];

/// An agent of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    pub name: String,
    /// The name that people see.
    pub title: String,
    pub description: String,
    /// When the supervisor should use it.
    pub routing_hint: String,
    #[serde(default)]
    pub system_prompt: String,
    /// Whether a supervisor without a list of agents has it (upstream's `SINGLE_NODE_AGENTS`).
    #[serde(default)]
    pub core: bool,
    /// The placements that it supports.
    #[serde(default)]
    pub placements: SupportedPlacements,
    /// The image of a remote-only agent; none if the agent runs outside the cluster.
    pub image: Option<String>,
    /// The variables that it reads.
    #[serde(default)]
    pub env: Vec<Variable>,
    #[serde(default)]
    pub servers: Vec<Server>,
    /// Allow-list of tools, for servers with more than an agent should see. Empty: all.
    #[serde(default)]
    pub tools: Vec<String>,
}

/// A variable that an agent reads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Variable {
    pub name: String,
    pub description: String,
    /// Whether the agent cannot work without it.
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub secret: bool,
    /// The form of the servers that reads it; without it, both do.
    pub form: Option<Form>,
}

/// The forms of a built-in tool server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// A child process.
    Stdio,
    Container,
}

/// A built-in tool server, in each form that exists.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Server {
    /// Its name, unique within the agent.
    pub name: String,
    /// As a child process.
    pub stdio: Option<Command>,
    pub container: Option<Image>,
    /// As an endpoint of the user's own installation.
    pub http: Option<Endpoint>,
}

/// A tool server as a child process.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Command {
    pub command: String,
    /// Its arguments; templates.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its environment; values are templates.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// A tool server as a container with the agent's variables.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    pub image: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// Further environment; values are templates.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Its port, which differs from every other entry's, so that all can be sidecars of one pod.
    pub port: u16,
    /// The path of its endpoint.
    pub path: String,
    /// Headers of each request to it; values are templates.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// A tool server at a URL.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Endpoint {
    /// The URL; a template.
    pub url: String,
    /// Headers of each request; values are templates.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// All entries. A test checks that every file can be read.
pub fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| FILES.iter().filter_map(|(_, text)| serde_saphyr::from_str(text).ok()).collect())
}

/// The entry with the name, trimmed and in any case.
pub fn find(name: &str) -> Option<&'static Entry> {
    let name = normal(name);
    entries().iter().find(|entry| entry.name == name)
}

/// The names of all entries.
pub fn names() -> Vec<&'static str> {
    entries().iter().map(|entry| entry.name.as_str()).collect()
}

/// The core agents, which a supervisor without a list of agents has.
pub fn core_agents() -> Vec<Agent> {
    entries().iter().filter(|entry| entry.core).map(|entry| Agent::named(&entry.name)).collect()
}

/// The agents of a spec, or the core agents if the list is absent.
pub fn declared_agents(spec: &CaipeSupervisorSpec) -> Cow<'_, [Agent]> {
    spec.agents.as_deref().map_or_else(|| Cow::Owned(core_agents()), Cow::Borrowed)
}

/// The resource without a file: the core agents and defaults.
pub fn default_resource() -> CaipeSupervisor {
    CaipeSupervisor::new("platform-engineer", CaipeSupervisorSpec::default())
}

/// The placements that an agent of the resource supports. With tool servers of its own, any agent of the catalogue can run
/// in both.
pub fn supported_placements(agent: &Agent) -> SupportedPlacements {
    match of_agent(agent) {
        _ if agent.external.is_some() || agent.image.is_some() => SupportedPlacements::RemoteOnly,
        Some(entry) if agent.mcp.is_empty() => entry.placements,
        _ => SupportedPlacements::Both,
    }
}

/// The entry of an agent of the resource, unless the resource makes it another kind of agent.
pub fn of_agent(agent: &Agent) -> Option<&'static Entry> {
    let own = agent.identity.is_some() || agent.external.is_some() || agent.image.is_some();
    if own { None } else { find(&agent.name) }
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
