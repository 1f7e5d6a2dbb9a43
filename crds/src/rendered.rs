//! The rendered spec: the contract between operator and supervisor.
//!
//! The operator writes it into a `ConfigMap` that is mounted in the pod; `caipe-supervisor serve` makes the same
//! from a file and the environment. Every choice is resolved. No secret is in it: a text marked as a *template*
//! may name variables as `${VAR}`, which the supervisor looks up first as a file `VAR` in the owner's
//! `secretsDir`, then in its environment, when it starts the thing that needs it. `${VAR:-default}` has a default for
//! a variable that is unset or empty, and `$${` is a literal `${`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::fault::Fault;
use crate::resource::model::Provider;
use crate::resource::settings::OAuth2;

/// Everything that a supervisor needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenderedSpec {
    /// Counts up with each change that the operator lets through; 0 outside a cluster.
    pub epoch: u64,
    /// SHA-256 in hex over the canonical JSON of everything but `epoch` and `hash`.
    pub hash: String,
    /// Who the supervisor is.
    pub supervisor: SupervisorIdentity,
    /// The models, the preferred one first, then the fallbacks in order. Empty: none was chosen, and a run says so.
    pub models: Vec<ModelChoice>,
    /// How the final answer is told from narration.
    pub answer_mode: AnswerMode,
    /// Whether answers stream token by token (`ENABLE_STREAMING`).
    pub streaming: bool,
    /// Bounds of one run.
    pub limits: Limits,
    /// The tools that ask A2A agents of others, if the supervisor has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a2a: Option<A2aTools>,
    /// Where conversations are kept.
    pub store: Store,
    /// How remote agents are probed.
    pub connectivity: Connectivity,
    /// Whose tokens callers may bring, if any; other ways in are for the environment to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
    /// The web origins whose pages may call (`CAIPE_CORS_ORIGINS`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cors_origins: Vec<String>,
    /// The enabled agents, in the order of the resource. Names are unique.
    pub agents: Vec<RenderedAgent>,
}

/// Who the supervisor says it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SupervisorIdentity {
    /// The name on its card.
    pub name: String,
    /// The description on its card.
    pub description: String,
    /// Replaces the built-in system prompt; has the same placeholders (see [`crate::prompt`]).
    pub system_prompt: Option<String>,
    /// Example questions for the card.
    pub skill_examples: Vec<String>,
    /// The URL that the card names (`EXTERNAL_URL`); without it, the address of the request.
    pub external_url: Option<String>,
}

/// One model of the chain. Its key is looked up by the provider's variable (`OPENAI_API_KEY`, …).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelChoice {
    /// Whose model.
    pub provider: Provider,
    /// The model's (or deployment's) name; absent for [`Provider::Scripted`].
    pub name: Option<String>,
    /// Replaces the provider's endpoint.
    pub base_url: Option<String>,
    /// A directory with one file per variable, looked at before the environment.
    pub secrets_dir: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Most tokens of one answer.
    pub max_output_tokens: Option<u32>,
    /// The script file of [`Provider::Scripted`].
    pub script: Option<String>,
}

/// How the final answer is told from narration (`USE_STRUCTURED_RESPONSE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AnswerMode {
    /// A call of the tool `PlatformEngineerResponse`.
    Structured,
    /// Whatever follows `[FINAL ANSWER]`.
    Marker,
}

/// Bounds of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Most steps of a run (`LANGGRAPH_RECURSION_LIMIT`).
    pub recursion: u32,
    /// Most tokens of a conversation before it is compacted (`MAX_CONTEXT_TOKENS`).
    pub max_context_tokens: u32,
    /// Messages that compaction always keeps (`MIN_MESSAGES_TO_KEEP`).
    pub min_messages_to_keep: u32,
    /// Most characters of one tool result; more is cut (`MAX_TOOL_OUTPUT_CHARS`).
    pub max_tool_output_chars: u32,
    /// Deadline of one model call, in milliseconds (`LLM_TIMEOUT_SECONDS`).
    pub model_timeout_ms: u64,
    /// Deadline of one tool call, in milliseconds.
    pub tool_timeout_ms: u64,
    /// Longest silence of a remote agent before the delegation fails, in milliseconds (`A2A_TIMEOUT`).
    pub agent_timeout_ms: u64,
    /// Deadline for an MCP server to answer `tools/list` after its start, in milliseconds.
    pub mcp_start_timeout_ms: u64,
}

/// The tools that ask A2A agents of others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct A2aTools {
    /// The registry: names of agents that somebody else runs, which the tools know by name.
    pub agents: Vec<String>,
    /// Where URLs may lead: hosts, `*.domain`, addresses and networks; `*` is every public address (`CAIPE_A2A_ALLOW`).
    pub allow: Vec<String>,
}

/// Where conversations are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Store {
    /// A file below the data directory.
    Sqlite {},
    /// Nowhere: gone with the process (`LANGGRAPH_CHECKPOINT_TYPE=memory`).
    Memory {},
}

/// How remote agents are probed (contract 2.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Connectivity {
    /// Whether remote agents are probed before the first request.
    pub check: bool,
    /// Whether they are probed again and again, so that a late one joins by itself.
    pub background: bool,
    /// Deadline of one probe at start, in milliseconds.
    pub timeout_ms: u64,
    /// Further attempts after a failed one, where there are no background probes.
    pub max_retries: u32,
    /// Wait before the first of these, in milliseconds; doubles each time.
    pub retry_delay_ms: u64,
    /// Wait before the first probe, in milliseconds.
    pub startup_delay_ms: u64,
    /// Time between background probes of an agent that answers, in milliseconds, where somebody chose one. One that
    /// does not answer is probed about every second.
    pub refresh_interval_ms: Option<u64>,
    /// Deadline of one background probe, in milliseconds.
    pub fast_check_timeout_ms: u64,
}

/// One enabled agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenderedAgent {
    /// The name, lower case; what `task` calls it.
    pub name: String,
    /// The name that people see.
    pub title: String,
    /// What it does, for cards and lists.
    pub description: String,
    /// When to use it, for the supervisor's model.
    pub routing_hint: String,
    /// Its own system prompt, also while it runs remotely: the pod that serves it reads this spec too. Empty for
    /// somebody else's program, which has its own.
    pub system_prompt: String,
    /// Where it runs.
    pub home: Home,
    /// Its tool servers, as the process that runs it reaches them; empty for somebody else's program.
    pub mcp: Vec<McpServer>,
    /// If not empty: only tools whose name matches one of these (`*` matches anything).
    pub tools: Vec<String>,
    /// Tools that a human must allow first (`*` matches anything).
    pub require_approval: Vec<String>,
    /// Variables without which it cannot work, for a clear warning.
    pub required_env: Vec<String>,
    /// A directory with one file per variable, looked at before the environment.
    pub secrets_dir: Option<String>,
    /// Its own model; the supervisor's without it. Fallbacks are the supervisor's.
    pub model: Option<ModelChoice>,
}

/// Where an agent runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Home {
    /// In the supervisor's own process.
    InProcess {},
    /// Behind A2A.
    Remote {
        /// Its base URL.
        url: String,
        /// Headers of each request; values are templates.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
}

/// One MCP server of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpServer {
    /// Its name, unique within the agent.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum McpTransport {
    /// A child process that speaks on its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments; templates.
        #[serde(default)]
        args: Vec<String>,
        /// Its environment beside `PATH`, `HOME` and the like; values are templates.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// Its working directory.
        #[serde(default)]
        cwd: Option<String>,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint; a template.
        url: String,
        /// Headers of each request; values are templates.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
}

impl RenderedSpec {
    /// The hash that belongs to the content: SHA-256 in hex over its canonical JSON (keys sorted, no spaces),
    /// without `epoch` and `hash`.
    pub fn content_hash(&self) -> String {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.retain(|key, _| key != "epoch" && key != "hash");
        }
        value.sort_all_objects();
        let digest = Sha256::digest(value.to_string().as_bytes());
        digest.iter().fold(String::with_capacity(64), |hex, byte| hex + &format!("{byte:02x}"))
    }

    /// The same with its hash filled in.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.hash = self.content_hash();
        self
    }

    /// The same for a process of its own that serves one of these agents: it contains no other agent. Returns that
    /// agent too.
    ///
    /// # Errors
    /// When there is no such agent, or nothing of it that this program could run.
    pub fn alone(mut self, name: &str) -> Result<(Self, RenderedAgent), Fault> {
        let Some(agent) = self.agent(name).cloned() else {
            let names: Vec<&str> = self.agents.iter().map(|agent| agent.name.as_str()).collect();
            let message = format!("there is no agent `{name}`: name one of {}", names.join(", "));
            return Err(Fault::new("agents", message));
        };
        if agent.system_prompt.is_empty() && agent.mcp.is_empty() {
            let message = "is somebody else's program, with nothing to run here".to_owned();
            return Err(Fault::new(format!("agents[{}]", agent.name), message));
        }
        self.agents = vec![agent.clone()];
        // Only the supervisor calls it, and with another key.
        self.oauth2 = None;
        self.cors_origins = Vec::new();
        Ok((self.sealed(), agent))
    }

    /// The agent of that name; trimmed and in any case.
    pub fn agent(&self, name: &str) -> Option<&RenderedAgent> {
        let name = crate::placement::normal(name);
        self.agents.iter().find(|agent| agent.name == name)
    }
}
