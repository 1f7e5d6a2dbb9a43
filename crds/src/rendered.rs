//! The rendered spec: the contract between operator and supervisor.
//!
//! The operator writes it into a `ConfigMap` that is mounted in the pod; `caipe-supervisor serve` makes the same
//! from a file and the environment. Every choice is resolved. It contains no secret: a text marked as a *template*
//! may name variables as `${VAR}`. The supervisor reads a variable from the file `VAR` in the owner's `secretsDir`, or else
//! from its environment. `${VAR:-default}` has a default for a variable that is unset or empty, and `$${` is a literal
//! `${`.
//!
//! # Versions
//!
//! Operator and pods may have different versions. A reader ignores fields that it does not know, with a warning, and refuses
//! a spec whose `minimumReader` is above its own [`SCHEMA_VERSION`]. A field that is new must be left out while it has its
//! default, so that an older pod reports it only where it is used. `crds/golden` has the fields of each version, and a test
//! compares them with these types.

mod budgets;
mod mcp;
mod skills;
mod store;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::sha256_hex;
use crate::fault::Fault;
use crate::resource::agent::AgentMode;
use crate::resource::approver::Approver;
use crate::resource::budget::Guards;
use crate::resource::derive::JsonSchema;
use crate::resource::model::Provider;
use crate::resource::settings::{Condensation, OAuth2};
use crate::resource::tool_domains::{
    Introspection, MemoryTools, ModelTools, ShellTools, TaskTools, Verification, WebTools, WorkspaceWrites,
};
use crate::resource::workflow::Workflow;

pub use budgets::{Budget, Budgets, ModelPrice, ToolBudget};
pub use mcp::{CheckCall, McpServer, McpTransport, RefusedCalls};
pub use skills::{SkillLocation, SkillSource, Skills};
pub use store::{Memory, Store};

/// The schema version of the specs that this program writes, and the newest that it understands completely. Increases when
/// a spec can contain something that an older reader would refuse or misunderstand.
pub const SCHEMA_VERSION: u32 = 1;

/// The oldest schema version whose readers run the specs correctly that this program writes. A new value that an older
/// reader would refuse or misunderstand makes this a function of the spec, so that only specs with that value need a newer
/// reader.
const MINIMUM_READER: u32 = 1;

/// The fields that the hash leaves out, because they say nothing about what runs.
const NOT_HASHED: [&str; 4] = ["schemaVersion", "minimumReader", "epoch", "hash"];

/// The complete configuration of a supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenderedSpec {
    /// The schema version of the program that wrote it; 0 before there were versions.
    #[serde(default)]
    pub schema_version: u32,
    /// The oldest schema version whose readers run it correctly.
    #[serde(default)]
    pub minimum_reader: u32,
    /// Increases with each change that the operator applies; 0 outside a cluster.
    pub epoch: u64,
    /// SHA-256 in hex over the canonical JSON of everything but the versions, `epoch` and `hash`, as its writer knows it. A
    /// reader that ignores a field cannot compute it, so readers only compare it.
    pub hash: String,
    pub supervisor: SupervisorIdentity,
    /// The models, the preferred one first, then the fallbacks in order. If there is none, every run fails
    /// with that reason.
    pub models: Vec<ModelChoice>,
    /// How the model marks its final answer.
    pub answer_mode: AnswerMode,
    /// Whether answers stream token by token (`ENABLE_STREAMING`).
    pub streaming: bool,
    /// Bounds of one run.
    pub limits: Limits,
    /// The summaries of what no longer fits into a model's context, if a model writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condensation: Option<Condensation>,
    /// What runs may use.
    #[serde(default, skip_serializing_if = "Budgets::is_default")]
    pub budgets: Budgets,
    /// The knowledge base, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rag: Option<Rag>,
    /// The tools that call other A2A agents, if they are enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a2a: Option<A2aTools>,
    /// The skills, if the resource has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Skills>,
    /// Where conversations are stored.
    pub store: Store,
    /// Days after which ended tasks and unused conversations are deleted; 0 keeps them. The default is 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<u32>,
    /// What is remembered about people. Absent if no agent remembers anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// How remote agents are probed.
    pub connectivity: Connectivity,
    /// The issuer of callers' tokens, if any. Shared keys are set in the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
    /// The principals that may decide approvals, unless the agent that asks has a list of its own; if empty, the owner of the
    /// conversation. The supervisor also enforces it for remote agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<Approver>,
    /// The web origins whose pages may send requests (`CAIPE_CORS_ORIGINS`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cors_origins: Vec<String>,
    /// The self-service workflows. Their texts are templates that may name variables that begin with `WORKFLOW_`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<Workflow>,
    /// The enabled agents, in the order of the resource. Names are unique.
    pub agents: Vec<RenderedAgent>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupervisorIdentity {
    /// The name on its card.
    pub name: String,
    /// The description on its card.
    pub description: String,
    /// Replaces the built-in system prompt; has the same placeholders (see [`crate::prompt`]).
    pub system_prompt: Option<String>,
    /// Example questions for the card.
    pub skill_examples: Vec<String>,
    /// The URL on the card (`EXTERNAL_URL`); without it, the address of the request.
    pub external_url: Option<String>,
}

/// One model of the chain. Its key is in the provider's variable (`OPENAI_API_KEY`, …).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelChoice {
    pub provider: Provider,
    /// The model's (or deployment's) name; absent for [`Provider::Scripted`].
    pub name: Option<String>,
    /// Replaces the provider's endpoint.
    pub base_url: Option<String>,
    /// A directory with one file per variable, read before the environment.
    pub secrets_dir: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Most tokens of one answer.
    pub max_output_tokens: Option<u32>,
    /// The script file of [`Provider::Scripted`].
    pub script: Option<String>,
}

/// How the model marks its final answer (`USE_STRUCTURED_RESPONSE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AnswerMode {
    /// A call of the tool `PlatformEngineerResponse`.
    Structured,
    /// The text after `[FINAL ANSWER]`.
    Marker,
}

/// Bounds of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Most steps of a run (`LANGGRAPH_RECURSION_LIMIT`).
    pub recursion: u32,
    /// Most tokens of a conversation before it is compacted (`MAX_CONTEXT_TOKENS`).
    pub max_context_tokens: u32,
    /// Messages that compaction always keeps (`MIN_MESSAGES_TO_KEEP`).
    pub min_messages_to_keep: u32,
    /// Most characters of one tool result; more is cut (`MAX_TOOL_OUTPUT_CHARS`).
    pub max_tool_output_chars: u32,
    /// Most lines of the output of a successful program that the model reads (`CAIPE_COMPACT_OUTPUT_LINES`); 0 means all.
    #[serde(default = "compact_lines", skip_serializing_if = "is_compact_lines")]
    pub compact_output_lines: u32,
    /// Deadline of one model call, in milliseconds (`LLM_TIMEOUT_SECONDS`).
    pub model_timeout_ms: u64,
    /// Deadline of one tool call, in milliseconds.
    pub tool_timeout_ms: u64,
    /// Longest silence of a remote agent before the delegation fails, in milliseconds (`A2A_TIMEOUT`).
    pub agent_timeout_ms: u64,
    /// Deadline for an MCP server to answer `tools/list` after its start, in milliseconds.
    pub mcp_start_timeout_ms: u64,
    /// When a run that makes no progress is stopped.
    #[serde(default, skip_serializing_if = "Guards::is_default")]
    pub guards: Guards,
}

const fn compact_lines() -> u32 {
    50
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_compact_lines(lines: &u32) -> bool {
    *lines == compact_lines()
}

/// The knowledge base, whose tools the supervisor has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rag {
    /// The URL of its MCP endpoint.
    pub url: String,
    /// Headers of each request; values are templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The directory with the variables of the headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets_dir: Option<String>,
    /// Most `search` calls of a run (`SEARCH_MAX_CALLS`).
    pub search_max_calls: u32,
    /// Most `fetch_document` calls of a run (`FETCH_DOCUMENT_MAX_CALLS`).
    pub fetch_document_max_calls: u32,
    /// Most characters of one result (`RAG_MAX_OUTPUT_CHARS`).
    pub max_output_chars: u32,
    /// Most results of one search (`RAG_MAX_SEARCH_RESULTS`).
    pub max_search_results: u32,
    /// The tools whose results are documents (`RAG_TOOL_NAMES`).
    pub tool_names: Vec<String>,
}

/// The tools that call other A2A agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct A2aTools {
    /// The names of the external agents that the tools can call by name.
    pub agents: Vec<String>,
    /// The allowed destinations of URLs: hosts, `*.domain`, addresses and networks; `*` is every public address (`CAIPE_A2A_ALLOW`).
    pub allow: Vec<String>,
}

/// How remote agents are probed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connectivity {
    /// Whether remote agents are probed. If not, each agent counts as reachable.
    pub check: bool,
    /// Whether they are probed in the background, so that an agent that starts late becomes usable.
    pub background: bool,
    /// Deadline of each probe until the first success, in milliseconds.
    pub timeout_ms: u64,
    /// Further attempts after a failed one, where there are no background probes.
    pub max_retries: u32,
    /// Wait before the first further attempt, in milliseconds; doubles each time.
    pub retry_delay_ms: u64,
    /// Wait before the first probe, in milliseconds.
    pub startup_delay_ms: u64,
    /// Time between background probes of an agent that responds, in milliseconds; 1.5 s by default. An agent that does not
    /// respond is probed about every second.
    pub refresh_interval_ms: Option<u64>,
    /// Deadline of each later probe, in milliseconds.
    pub fast_check_timeout_ms: u64,
}

/// One enabled agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenderedAgent {
    /// The name in lower case; the tool `task` uses it.
    pub name: String,
    /// The name that people see.
    pub title: String,
    /// Its description on cards and in lists.
    pub description: String,
    /// When the supervisor's model should use it.
    pub routing_hint: String,
    /// Its system prompt, also while it is remote, because its pod reads this spec too. Empty for an agent that this program
    /// does not run.
    pub system_prompt: String,
    /// Where it runs.
    pub placement: Placement,
    /// Its tool servers, as the process that runs the agent reaches them. Empty for an agent that this program does not run.
    pub mcp: Vec<McpServer>,
    /// If not empty: only tools whose name matches one of these (`*` matches anything).
    pub tools: Vec<String>,
    /// The estimated tokens of the descriptions of its tools above which its model searches for them; 20,000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub find_tools_above: Option<u32>,
    /// The skills that it may use, by name (`*` matches anything); all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Vec<String>>,
    /// The tool `shell_exec`, if it has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellTools>,
    /// The tool `web_fetch`, if it has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebTools>,
    /// Its workspace, if its model reads about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<RenderedWorkspace>,
    /// Most turns of its model in one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// How many words an answer of it shall have at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_answer_words: Option<u32>,
    /// How it verifies what it changes, if its runs must not end without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// The tool `describe_self`, if it has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection: Option<Introspection>,
    /// The tools that ask other models, if it has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<ModelTools>,
    /// The tools for the tasks of a person, if it has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskTools>,
    /// The tools for the facts about a person, if it has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryTools>,
    /// Tools that need the approval of a person (`*` matches anything).
    pub require_approval: Vec<String>,
    /// Tools that a person may allow for the rest of a conversation (`*` matches anything).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_always: Vec<String>,
    /// The principals that may decide its approvals, instead of those of the supervisor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<Approver>,
    /// The agents that it may delegate to. The spec of an agent's own process has those that are remote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegates: Vec<String>,
    /// The tools that call other A2A agents, if it has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a2a: Option<A2aTools>,
    /// What it may do by itself.
    #[serde(default, skip_serializing_if = "AgentMode::is_ask")]
    pub mode: AgentMode,
    /// Tools that only read (`*` matches anything).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_tools: Vec<String>,
    /// Tools that need no approval, whatever they do (`*` matches anything).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_approve: Vec<String>,
    /// What one run of it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Where its own process stores its tasks, if that is a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// The variables that it requires.
    pub required_env: Vec<String>,
    /// A directory with one file per variable, read before the environment.
    pub secrets_dir: Option<String>,
    /// Its own model, if it differs from the supervisor's. Fallbacks are the supervisor's.
    pub model: Option<ModelChoice>,
}

/// The workspace of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RenderedWorkspace {
    /// Where the agent may write files.
    #[serde(default, skip_serializing_if = "WorkspaceWrites::is_everywhere")]
    pub writes: WorkspaceWrites,
    /// The directory with the files below `/workspace/`, if they are on a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

impl RenderedAgent {
    /// Whether the agent is another program, with nothing that this program could run. Nobody can require approval of its calls.
    pub fn is_foreign(&self) -> bool {
        self.system_prompt.is_empty() && self.mcp.is_empty()
    }
}

/// Where an agent runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Placement {
    /// In the supervisor's own process.
    InProcess {},
    /// Behind A2A.
    Remote {
        url: String,
        /// Headers of each request; values are templates.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
}

impl RenderedSpec {
    /// The hash that belongs to the content: SHA-256 in hex over its canonical JSON (keys sorted, no spaces),
    /// without the versions, `epoch` and `hash`.
    pub fn content_hash(&self) -> String {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.retain(|key, _| !NOT_HASHED.contains(&key.as_str()));
        }
        value.sort_all_objects();
        sha256_hex(&value.to_string(), 64)
    }

    /// The same with this program's versions and its hash filled in.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        (self.schema_version, self.minimum_reader) = (SCHEMA_VERSION, MINIMUM_READER);
        self.hash = self.content_hash();
        self
    }

    /// The spec for a process that serves one agent. Returns that agent too. The settings of the supervisor and the other agents
    /// are left out, except for the remote ones that it delegates to, so that a change there does not change this spec. A spec
    /// that is for this agent already keeps its hash, which may cover fields that this program does not know.
    ///
    /// # Errors
    /// If there is no such agent, or this program cannot run it.
    pub fn for_agent(self, name: &str) -> Result<(Self, RenderedAgent), Fault> {
        let Some(agent) = self.agent(name).cloned() else {
            let names: Vec<&str> = self.agents.iter().map(|agent| agent.name.as_str()).collect();
            let message = format!("there is no agent `{name}`: name one of {}", names.join(", "));
            return Err(Fault::new("agents", message));
        };
        if agent.system_prompt.is_empty() && agent.mcp.is_empty() {
            let message = "runs outside this program: there is nothing to serve here".to_owned();
            return Err(Fault::new(format!("agents[{}]", agent.name), message));
        }
        let alone = self.clone().alone(agent.clone());
        Ok((if alone == self { self } else { alone.sealed() }, agent))
    }

    fn alone(mut self, agent: RenderedAgent) -> Self {
        // The supervisor passes on only the decisions of principals that may decide.
        self.approvers = Vec::new();
        self.store = agent.store.clone().unwrap_or_else(|| self.store.of_agent());
        // The supervisor has the facts, and answers the agent's calls about them.
        let memory = self.memory.filter(|_| agent.memory.is_some());
        self.memory =
            memory.map(|memory| Memory { ttl_minutes: None, supervisor: false, store: None, ..memory });
        self.agents = self.alone_with_delegates(agent);
        self.supervisor = SupervisorIdentity::default();
        self.answer_mode = AnswerMode::Structured;
        (self.rag, self.a2a, self.budgets.run) = (None, None, Budget::default());
        if let Some(skills) = &mut self.skills {
            skills.supervisor = None;
        }
        self.connectivity = Connectivity::default();
        // The supervisor is the only caller, with a key of its own.
        self.oauth2 = None;
        self.cors_origins = Vec::new();
        self.workflows = Vec::new();
        self
    }

    /// The agent, and the agents that it can delegate to from a process of its own, with what a caller needs to know.
    fn alone_with_delegates(&self, mut agent: RenderedAgent) -> Vec<RenderedAgent> {
        let is_remote = |agent: &&RenderedAgent| matches!(agent.placement, Placement::Remote { .. });
        let delegates = agent.delegates.iter().filter_map(|name| self.agent(name)).filter(is_remote);
        let called = |delegate: &RenderedAgent| RenderedAgent {
            approvers: Vec::new(),
            delegates: Vec::new(),
            a2a: None,
            shell: None,
            web: None,
            workspace: None,
            max_turns: None,
            max_answer_words: None,
            verification: None,
            introspection: None,
            models: None,
            tasks: None,
            memory: None,
            mcp: Vec::new(),
            model: None,
            required_env: Vec::new(),
            skills: None,
            store: None,
            tools: Vec::new(),
            ..delegate.clone()
        };
        let delegates: Vec<RenderedAgent> = delegates.map(called).collect();
        agent.delegates = delegates.iter().map(|delegate| delegate.name.clone()).collect();
        agent.approvers = Vec::new();
        [vec![agent], delegates].concat()
    }

    /// The agent of that name; trimmed and in any case.
    pub fn agent(&self, name: &str) -> Option<&RenderedAgent> {
        let name = crate::names::normal(name);
        self.agents.iter().find(|agent| agent.name == name)
    }
}

#[cfg(test)]
#[path = "rendered_tests.rs"]
mod tests;
