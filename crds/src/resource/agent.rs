//! `spec.agents`: an agent of the catalogue, your own, or an external one.

use serde::{Deserialize, Serialize};

use super::agent_state::AgentPlacement;
use super::approver::Approver;
use super::budget::Budget;
#[cfg(feature = "kubernetes")]
use super::common::list_map;
use super::common::{ConfigMapRef, EnvVar, PodTemplate, Resources, SecretKeyRef, SecretRef, ServiceAccount};
use super::derive::{JsonSchema, KubeSchema};
use super::mcp::McpServer;
use super::model::ModelOverride;
use super::rules;
use super::settings::{ExternalStore, PromptSection};
use super::tool_domains::{
    Introspection, MemoryTools, ModelTools, ShellTools, TaskTools, Verification, WebTools, Workspace,
};

/// An agent. With a `name` only, it is an agent of the catalogue; `identity`, `external` and `image` select another kind.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.name != 'all' && self.name != 'user-input' && self.name != 'rag' && self.name != 'supervisor' && self.name != 'general-purpose'").message(rules::AGENT_RESERVED),
    validation = Rule::new("[has(self.identity), has(self.external), has(self.image)].filter(x, x).size() <= 1").message(rules::AGENT_KIND),
    validation = Rule::new("!(has(self.external) || has(self.image)) || !((has(self.mcp) && size(self.mcp) > 0) || (has(self.tools) && size(self.tools) > 0) || (has(self.requireApproval) && size(self.requireApproval) > 0) || (has(self.allowAlways) && size(self.allowAlways) > 0) || (has(self.readTools) && size(self.readTools) > 0) || (has(self.autoApprove) && size(self.autoApprove) > 0) || (has(self.delegates) && size(self.delegates) > 0) || has(self.mode) || has(self.skills) || has(self.shell) || has(self.web) || has(self.workspace) || has(self.verification) || has(self.introspection) || has(self.models) || has(self.tasks) || has(self.memory) || has(self.maxTurns) || has(self.maxAnswerWords) || has(self.model) || has(self.store))").message(rules::AGENT_FOREIGN_TOOLS),
    validation = Rule::new("!has(self.delegates) || !(self.name in self.delegates)").message(rules::AGENT_DELEGATES_SELF),
    validation = Rule::new("!has(self.external) || !(has(self.secretRef) || (has(self.env) && size(self.env) > 0) || has(self.resources) || has(self.replicas) || has(self.serviceAccount) || has(self.podTemplate))").message(rules::AGENT_EXTERNAL_POD),
    validation = Rule::new("!(has(self.external) || has(self.image)) || !has(self.placement) || self.placement == 'Remote'").message(rules::AGENT_REMOTE_ONLY),
    validation = Rule::new(rules::WORKSPACE_VOLUME_CEL).message(rules::WORKSPACE_VOLUME),
    validation = Rule::new(rules::SIDECAR_PORTS_CEL).message(rules::SIDECAR_PORTS),
)]
pub struct Agent {
    /// The name, in lower case, for `distributedAgents` and for the model that delegates.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// `false` disables the agent and keeps its settings.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Where the agent runs: in the supervisor's process or in a pod of its own. If absent, `distributedAgents` and then
    /// `defaultPlacement` decide. External agents and those with an image are always remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AgentPlacement")]
    pub placement: Option<AgentPlacement>,
    /// The identity of a custom agent, whose tools are those of `mcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The URL of an external A2A agent, which is always remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// The image of an agent that serves A2A on port 8000. The agent is always remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Tool servers. They replace those of an agent of the catalogue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = list_map("name"))]
    pub mcp: Vec<McpServer>,
    /// The Secret with the agent's variables, such as `ARGOCD_TOKEN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// Further variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = list_map("name"))]
    pub env: Vec<EnvVar>,
    /// The permitted tools; `*` matches any characters. An empty list permits all tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128)))]
    pub tools: Vec<String>,
    /// The skills that the agent may use, by name; `*` matches any characters. The default is all of `spec.skills`; an empty list
    /// permits none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    pub skills: Option<Vec<String>>,
    /// The estimated tokens of the descriptions of the agent's tools above which its model does not read them all: it finds
    /// tools by words with `find_tools`. The default is 20000; with 0 it always does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub find_tools_above: Option<u32>,
    /// The tool `shell_exec`: commands in a sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellTools>,
    /// The tool `web_fetch`: pages of the permitted hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebTools>,
    /// With it, even if it is empty, the agent's model reads with each request which virtual files the conversation has and, from
    /// `PROGRESS.json`, what is left to do. Its prompt asks it to write that file. The files below `/.scratch/` are shared with the
    /// agent that delegates to it, and so with the other agents that work for that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Workspace>,
    /// How the agent verifies what it changes. With it, even if it is empty, a run that has changed something does not end before the
    /// model has verified it or has been reminded twice; the answer names what is not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// The tool `describe_self`: what the agent is, what it can call, and what is left of its budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection: Option<Introspection>,
    /// The tools `list_models` and `ask_model`: questions to other models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<ModelTools>,
    /// The tools `tasks_list` and `tasks_get`: the tasks of the person on this supervisor. The supervisor answers the calls of a
    /// remote agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskTools>,
    /// The tools `memory_save`, `memory_search` and `memory_forget`: facts about each person for later conversations. The supervisor
    /// answers the calls of a remote agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryTools>,
    /// What the agent may do by itself. The default is `Ask`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AgentMode")]
    pub mode: Option<AgentMode>,
    /// Tools that only read, in addition to those that the catalogue lists and those whose name says so; `*` matches any
    /// characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128)))]
    pub read_tools: Vec<String>,
    /// Tools that run without approval although the mode requires it; `*` matches any characters. `requireApproval` overrides
    /// this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128)))]
    pub auto_approve: Vec<String>,
    /// Tools that need the approval of a person in every mode; `*` matches any characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128)))]
    pub require_approval: Vec<String>,
    /// Tools that a person may allow for the rest of a conversation when approving a call; `*` matches any characters. A
    /// destructive tool is always asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128)))]
    pub allow_always: Vec<String>,
    /// The principals that may decide the approvals of this agent, instead of `spec.approvers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub approvers: Vec<Approver>,
    /// The agents that this agent may delegate to. A chain of delegations has at most 3 agents, and comes back to none. A remote
    /// agent delegates to remote agents only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 32)))]
    pub delegates: Vec<String>,
    /// The agent's own model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelOverride>,
    /// Changes of the agent's prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<AgentPrompts>,
    /// What one run of the agent may use, instead of `budgets.agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Most turns of the agent's model in one run, after which it must answer. The default is `limits.recursion`, of which a turn
    /// and the calls that follow it use two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_turns: Option<u32>,
    /// How many words an answer of the agent shall have at most, as its prompt asks. Of an answer of more than twice as many, the
    /// agent that delegates reads the beginning, and the whole is a file below `/.scratch/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20, max = 100_000))]
    pub max_answer_words: Option<u32>,
    /// The number of pods while the agent is remote. The default is 1. A supervisor pod sends its tasks to one of them while
    /// that one is available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: Option<i32>,
    /// Where the agent keeps its tasks while it is remote: a server, so that another pod continues the tasks of a pod that was lost.
    /// The default is the memory of the pod and a file that ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<AgentStore>,
    /// The account of the agent's pods while the agent is remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccount>,
    /// Compute resources of the agent's container while the agent is remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// A partial pod template for the agent's pod while the agent is remote, applied over the generated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
}

/// A store of a remote agent's own. Its Secret needs access to the agent's own database or prefix only.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.redis) != has(self.mongodb)").message(rules::AGENT_STORE_KIND))]
pub struct AgentStore {
    /// Redis 6 or newer, or Valkey, as `spec.store.redis`. The default prefix of all keys is `NAMESPACE.NAME.AGENT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<ExternalStore>,
    /// A replica set or a sharded cluster of MongoDB, as `spec.store.mongodb`. The default database is `NAMESPACE_NAME_AGENT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mongodb: Option<ExternalStore>,
}

impl AgentStore {
    /// The server that keeps the tasks.
    #[must_use]
    pub fn server(&self) -> Option<&ExternalStore> {
        self.redis.as_ref().or(self.mongodb.as_ref())
    }
}

/// What an agent may do by itself. A tool reads if the agent's `readTools`, the catalogue or the beginning of its name says
/// so; a tool that nothing is known of writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AgentMode {
    /// It only reads: other tools are not offered, and calls of them are refused.
    ReadOnly,
    /// It reads, and asks a person before every other call.
    #[default]
    Ask,
    /// It reads and writes, and asks a person before a call that deletes, merges, revokes or otherwise destroys.
    Full,
}

impl AgentMode {
    /// Whether it is the default.
    pub fn is_ask(&self) -> bool {
        *self == Self::Ask
    }
}

/// Changes of an agent's prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentPrompts {
    /// Sections of the prompt that replace those of the same title, or are added.
    #[schemars(length(min = 1, max = 32))]
    pub sections: Vec<PromptSection>,
}

/// The identity of a custom agent.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.inline) != has(self.configMapRef)").message(rules::TEXT_SOURCE))]
pub struct Identity {
    /// The identity itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<InlineIdentity>,
    /// A `ConfigMap` with the key `IDENTITY.md` and optionally `CONTEXT.md`, or with the keys `description` and `systemPrompt`, and
    /// optionally `title` and `routingHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ConfigMapRef>,
}

/// An identity in the resource.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InlineIdentity {
    /// The name that people see. The default is derived from the agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub title: Option<String>,
    /// The purpose of the agent, in a sentence or two.
    #[schemars(length(min = 1, max = 1024))]
    pub description: String,
    /// When the supervisor should use the agent. The default is the description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub routing_hint: Option<String>,
    /// The system prompt.
    #[schemars(length(min = 1, max = 65536))]
    pub system_prompt: String,
}

/// An external A2A agent.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct External {
    /// The base URL; the card is at `/.well-known/agent-card.json` below it.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::URL_CEL).message(rules::URL))]
    pub url: String,
    /// The key of a Secret with the agent's bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<TokenRef>,
    /// The purpose of the agent, by which the supervisor decides when to use it. The default is `NAME: operations and management`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub description: Option<String>,
}

/// A bearer token in a Secret.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRef {
    /// The Secret's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key. The default is `token`.
    #[serde(default = "token")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: String,
}

impl From<&TokenRef> for SecretKeyRef {
    fn from(token: &TokenRef) -> Self {
        Self { name: token.name.clone(), key: token.key.clone() }
    }
}

const fn yes() -> bool {
    true
}

fn token() -> String {
    "token".to_owned()
}

impl Agent {
    /// An agent of the catalogue, with nothing changed.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), enabled: true, ..Self::default() }
    }

    /// What it may do by itself.
    pub fn mode(&self) -> AgentMode {
        self.mode.unwrap_or_default()
    }
}
