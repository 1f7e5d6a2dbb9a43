//! The catalogue of agents: one data file each in `crds/catalogue/`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::names::normal;
use crate::placement::SupportedPlacements;
use crate::rendered::{CheckCall, RefusedCalls};
use crate::resource::agent::Agent;
use crate::resource::tool_domains::{Verification, Workspace};
use crate::resource::{CaipeSupervisor, CaipeSupervisorSpec};

/// Name and text of each data file, in the order in which agents are listed: upstream's `SINGLE_NODE_AGENTS`, then
/// the others.
const FILES: [(&str, &str); 23] = [
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
    ("kubernetes", include_str!("../catalogue/kubernetes.yaml")),
    ("grafana", include_str!("../catalogue/grafana.yaml")),
    ("netutils", include_str!("../catalogue/netutils.yaml")),
    ("victorops", include_str!("../catalogue/victorops.yaml")),
    ("petstore", include_str!("../catalogue/petstore.yaml")),
    ("jarvis", include_str!("../catalogue/jarvis.yaml")),
    ("researcher", include_str!("../catalogue/researcher.yaml")),
    ("deep-thinker", include_str!("../catalogue/deep-thinker.yaml")),
    ("writer", include_str!("../catalogue/writer.yaml")),
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
    /// Its workspace, unless the resource declares one.
    pub workspace: Option<Workspace>,
    /// How it verifies what it changes, unless the resource declares it.
    pub verification: Option<Verification>,
    /// Most turns of its model, unless the resource has a number.
    pub max_turns: Option<u32>,
    /// How many words its answers shall have at most, unless the resource has a number.
    pub max_answer_words: Option<u32>,
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
    /// Where to get it, and the scopes that it needs.
    pub obtain: Option<String>,
}

/// A built-in tool server: a program, which is a child process on a laptop and runs behind a bridge in a cluster, or an endpoint of
/// the user's own installation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Server {
    /// Its name, unique within the agent.
    pub name: String,
    /// Where its source is.
    pub source: String,
    pub licence: String,
    /// The day on which it was last started, and its tools compared with the lists below.
    pub tried: String,
    pub stdio: Option<Command>,
    pub http: Option<Endpoint>,
    /// Headers of each request to the program where it is reached over HTTP (`MCP_MODE=http`); values are templates.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The offered tools (`*` matches any characters), unless the resource has a list; all if it is empty.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Tools that are never offered.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Tools that only read, although their names do not say so.
    #[serde(default)]
    pub reads: Vec<String>,
    /// Tools that destroy, although their names do not say so.
    #[serde(default)]
    pub destructive: Vec<String>,
    /// Calls that are never made, by an argument.
    #[serde(default)]
    pub refuse: Vec<RefusedCalls>,
    /// A read that shows whether the credentials are accepted.
    pub check: Option<CheckCall>,
    /// What the model should know of the server; appended to the system prompt.
    pub notes: Option<String>,
}

/// A tool server as a program that speaks MCP on its standard input and output.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Command {
    /// The package with the program.
    pub package: Package,
    /// The name of the program in the package.
    pub program: String,
    /// Its arguments; templates.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its environment; values are templates.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Added unless the agent is read-only.
    #[serde(default)]
    pub write: Settings,
    /// Added if the agent is read-only.
    #[serde(default)]
    pub read_only: Settings,
    /// Whether it uses the API of the cluster that it runs in. Its pod, and no other one, then has the token of an account of its
    /// own, to which the operator grants no rights.
    #[serde(default)]
    pub uses_cluster_api: bool,
    /// The memory that it requests in a cluster.
    pub memory: String,
    /// The deadline from its start to its list of tools, in seconds, if it needs more than `limits.mcpStartTimeoutSeconds`.
    pub start_seconds: Option<u32>,
}

/// Arguments and variables of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// A package of a registry, at one version.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Package {
    pub registry: Registry,
    pub name: String,
    pub version: String,
    /// The program's directory in a Go module.
    pub path: Option<String>,
    /// Further requirements of a Python package.
    #[serde(default)]
    pub with: Vec<String>,
    /// The Python version that a Python package needs.
    pub python: Option<String>,
}

/// A package registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Registry {
    /// The npm registry.
    Npm,
    /// The Python package index.
    Pypi,
    /// The Go module proxy.
    Go,
}

impl Command {
    /// The command that downloads the package if necessary and starts the program, without the program's arguments.
    pub fn launcher(&self) -> (&'static str, Vec<String>) {
        let Package { name, version, path, with, python, .. } = &self.package;
        match self.package.registry {
            Registry::Npm => {
                let package = format!("--package={name}@{version}");
                ("npx", vec!["-y".to_owned(), package, "--".to_owned(), self.program.clone()])
            }
            Registry::Pypi => {
                let python = python.iter().flat_map(|python| ["--python", python]);
                let with = with.iter().flat_map(|with| ["--with", with]);
                let mut args: Vec<String> = python.chain(with).map(str::to_owned).collect();
                args.extend(["--from".to_owned(), format!("{name}=={version}"), self.program.clone()]);
                ("uvx", args)
            }
            Registry::Go => {
                let program = path.as_ref().map_or_else(|| name.clone(), |path| format!("{name}/{path}"));
                ("go", vec!["run".to_owned(), format!("{program}@{version}")])
            }
        }
    }

    /// The arguments and the environment of the program; values are templates.
    pub fn settings(&self, read_only: bool) -> Settings {
        let more = if read_only { &self.read_only } else { &self.write };
        let args = self.args.iter().chain(&more.args).cloned().collect();
        let env = self.env.iter().chain(&more.env).map(|(name, text)| (name.clone(), text.clone()));
        Settings { args, env: env.collect() }
    }
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

impl Entry {
    /// The offered tools; all if one of its servers has no list.
    pub fn tools(&self) -> Vec<String> {
        if self.servers.iter().any(|server| server.tools.is_empty()) {
            return Vec::new();
        }
        self.servers.iter().flat_map(|server| server.tools.clone()).collect()
    }
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

/// Whether all tool servers of an agent are programs of the catalogue. In a cluster they run in pods of their own, and only these
/// get the agent's Secret.
pub fn has_separate_tools(agent: &Agent) -> bool {
    let entry = of_agent(agent).filter(|entry| agent.mcp.is_empty() && !entry.servers.is_empty());
    entry.is_some_and(|entry| entry.servers.iter().all(|server| server.stdio.is_some()))
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
