//! The supervisor's own settings: knowledge base, bounds, store, probing, card, prompts, access.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::budget::Guards;
#[cfg(feature = "kubernetes")]
use super::common::list_map;
use super::common::{SecretHeader, SecretKeyRef, SecretRef, TextSource};
use super::derive::{JsonSchema, KubeSchema};
use super::rules;
use super::tool_domains::destination;
use super::volume::VolumeClaim;

/// The tools of the knowledge base.
const KNOWLEDGE_TOOLS: [&str; 5] =
    ["search", "fetch_document", "list_datasources", "list_datasources_and_entity_types", "fetch_url"];

/// The knowledge base.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rag {
    /// The base URL of the RAG server, or the URL of its MCP endpoint, which ends in `/mcp`.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::URL_CEL).message(rules::URL))]
    pub url: String,
    /// Headers of each request whose values are in Secrets, for example a bearer token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = list_map("name"))]
    pub headers_from: Vec<SecretHeader>,
    /// Most `search` calls of one request.
    #[serde(default = "number::<5>")]
    #[schemars(range(min = 1, max = 1000))]
    pub search_max_calls: u32,
    /// Most `fetch_document` calls of one request.
    #[serde(default = "number::<10>")]
    #[schemars(range(min = 1, max = 1000))]
    pub fetch_document_max_calls: u32,
    /// Most characters of one result; a longer result is truncated.
    #[serde(default = "number::<10_000>")]
    #[schemars(range(min = 100, max = 1_000_000))]
    pub max_output_chars: u32,
    /// Most results of one search.
    #[serde(default = "number::<3>")]
    #[schemars(range(min = 1, max = 100))]
    pub max_search_results: u32,
    /// The tools whose results are documents: they are cut to `maxOutputChars`, are not shown to clients, and are the sources of
    /// the answer.
    #[serde(default = "knowledge_tools")]
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 64)))]
    pub tool_names: Vec<String>,
}

/// Tools that call other A2A agents: the external ones of `agents` by name, and those that `allow` permits by URL.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct A2aTools {
    /// The permitted destinations of URLs: hosts, `*.domain`, addresses, each with an optional `:port`, and networks; `*`
    /// means every public address. An empty list permits none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("items" = destination()))]
    pub allow: Vec<String>,
    /// The agents of `agents` that have the tools too; the supervisor always has them. By name, such an agent calls the external
    /// agents of its `delegates`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub agents: Vec<String>,
}

/// The limits of a run.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Most steps of a run. After them, the model must answer from what it has.
    #[serde(default = "number::<500>")]
    #[schemars(range(min = 1, max = 100_000))]
    pub recursion: u32,
    /// Most tokens of a conversation before it is compacted.
    #[serde(default = "number::<100_000>")]
    #[schemars(range(min = 1000, max = 10_000_000))]
    pub max_context_tokens: u32,
    /// The number of messages that compaction keeps.
    #[serde(default = "number::<4>")]
    #[schemars(range(min = 1, max = 1000))]
    pub min_messages_to_keep: u32,
    /// Most characters of one tool result. The rest of a longer result is kept as a virtual file.
    #[serde(default = "number::<50_000>")]
    #[schemars(range(min = 100, max = 10_000_000))]
    pub max_tool_output_chars: u32,
    /// Most lines that the model reads of the output of a program that succeeded; of a longer one it reads the first five, and the
    /// rest is kept as a virtual file. 0 means all lines.
    #[serde(default = "number::<50>")]
    #[schemars(range(min = 0, max = 100_000))]
    pub compact_output_lines: u32,
    /// Deadline of one model call, in seconds. `LLM_TIMEOUT_SECONDS` overrides it.
    #[serde(default = "number::<300>")]
    #[schemars(range(min = 1, max = 86_400))]
    pub model_timeout_seconds: u32,
    /// Deadline of one tool call, in seconds.
    #[serde(default = "number::<120>")]
    #[schemars(range(min = 1, max = 86_400))]
    pub tool_timeout_seconds: u32,
    /// Longest time without an event of a remote agent, in seconds. Then the supervisor retries the call, and fails it after
    /// twice that time.
    #[serde(default = "number::<120>")]
    #[schemars(range(min = 1, max = 86_400))]
    pub agent_timeout_seconds: u32,
    /// Deadline for a tool server to list its tools after its start, in seconds.
    #[serde(default = "number::<60>")]
    #[schemars(range(min = 1, max = 3600))]
    pub mcp_start_timeout_seconds: u32,
    /// When a run that makes no progress is stopped.
    #[serde(default)]
    pub guards: Guards,
}

/// Summaries of what no longer fits into a model's context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condensation {
    /// The name of a model of the agent's provider that writes the summaries, for example a cheaper one. The default is the agent's
    /// own model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub model_name: Option<String>,
}

/// The store of conversations. The default is `SQLite`.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.sqlite), has(self.redis), has(self.mongodb)].filter(kind, kind).size() < 2").message(rules::STORE_KIND))]
pub struct Store {
    /// A file on a volume, by default that of the claim `NAME.data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sqlite: Option<VolumeClaim>,
    /// Redis 6 or newer, or Valkey. The Secret's key `REDIS_URL` is the URL of the server; its key `REDIS_CA` is the certificate
    /// authority as PEM, if the server has one of its own. The page on stores lists the settings that the server needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<ExternalStore>,
    /// A replica set or a sharded cluster of MongoDB. The Secret's key `MONGODB_URI` is the URI of the server; its key `MONGODB_CA` is
    /// the certificate authority as PEM, if the server has one of its own. The page on stores lists what the server needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mongodb: Option<ExternalStore>,
    /// Ended tasks and unused conversations are deleted after this many days. The default is 30; 0 keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 36500))]
    pub retention_days: Option<u32>,
}

impl Store {
    /// The server that keeps the conversations, if there is one.
    #[must_use]
    pub fn server(&self) -> Option<&ExternalStore> {
        self.redis.as_ref().or(self.mongodb.as_ref())
    }
}

/// A store outside the pod.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalStore {
    /// The Secret with the connection string.
    pub secret_ref: SecretRef,
    /// The database (MongoDB, with `_` for each dot) or the prefix of all keys (Redis). The default is `NAMESPACE.NAME` of the resource.
    /// Resources with the same one in one server would share their conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9_.:-]+$"))]
    pub database: Option<String>,
    /// Minutes without a change after which a conversation is deleted, if that is sooner than `retentionDays`; 0 means
    /// `retentionDays` alone.
    #[serde(default)]
    #[schemars(range(min = 0, max = 5_256_000))]
    pub ttl_minutes: u32,
    /// Whether the supervisor does not start while the store is unreachable. Otherwise it keeps conversations in memory until it
    /// restarts, and the resource is `Degraded`. With `replicas` above 1, the store is required.
    #[serde(default)]
    pub required: bool,
}

/// The probes of remote agents.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connectivity {
    /// Whether remote agents are probed. `false` disables all probes; each agent then counts as reachable.
    #[serde(default = "yes")]
    pub check: bool,
    /// Whether the probes repeat in the background, so that an agent that starts late becomes usable.
    #[serde(default = "yes")]
    pub background: bool,
    /// Deadline of each probe until the first success, in seconds.
    #[serde(default = "number::<5>")]
    #[schemars(range(min = 1, max = 300))]
    pub timeout_seconds: u32,
    /// Further attempts after a failed probe. Applies only if `background` is `false`.
    #[serde(default = "number::<3>")]
    #[schemars(range(min = 0, max = 100))]
    pub max_retries: u32,
    /// Wait before the first further attempt, in seconds; each further wait is twice as long. Applies only if `background` is
    /// `false`.
    #[serde(default = "number::<2>")]
    #[schemars(range(min = 0, max = 300))]
    pub retry_delay_seconds: u32,
    /// Wait before the first probe, in seconds.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3600))]
    pub startup_delay_seconds: u32,
    /// Time between background probes of a responding agent, in seconds. The default is 1.5, so that the status reports a
    /// lost agent within 5 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub refresh_interval_seconds: Option<u32>,
    /// Deadline of each later probe, in the background and before a delegation, in seconds.
    #[serde(default = "number::<2>")]
    #[schemars(range(min = 1, max = 300))]
    pub fast_check_timeout_seconds: u32,
}

/// The agent card of the supervisor.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// The supervisor's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// The purpose of the supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub description: Option<String>,
    /// The URL of the supervisor for clients outside the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::URL_CEL).message(rules::URL))]
    pub external_url: Option<String>,
    /// Example questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 512)))]
    pub skill_examples: Vec<String>,
}

/// Prompts, and the form of answers.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompts {
    /// Replaces the supervisor's system prompt. Placeholders: `{tool_instructions}`, `{rag_instructions}`,
    /// `{final_answer_instructions}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<TextSource>,
    /// How the model marks its final answer.
    #[serde(default)]
    pub answer_mode: AnswerMode,
    /// Whether text streams token by token, or is sent once it is complete.
    #[serde(default = "yes")]
    pub streaming: bool,
    /// Sections of the supervisor's prompt that replace those of the same title, or are added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub sections: Vec<PromptSection>,
}

/// A section of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptSection {
    /// The heading, for example `Changes and risk`. `caipe-supervisor prompt` prints those of the built-in prompt.
    #[schemars(length(min = 1, max = 64))]
    pub title: String,
    /// The text below the heading. An empty text removes the section.
    #[serde(default)]
    #[schemars(length(max = 16384))]
    pub text: String,
}

/// How the model marks its final answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AnswerMode {
    /// By a tool call.
    #[default]
    Structured,
    /// By the marker `[FINAL ANSWER]`.
    Marker,
}

/// The credentials that callers need. If both are set, either one is accepted.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.sharedKey) || has(self.oauth2)").message(rules::AUTH_EMPTY))]
pub struct Auth {
    /// A bearer key that all callers share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_key: Option<SharedKey>,
    /// `OAuth` 2.0 bearer tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
}

/// A bearer key that all callers share.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedKey {
    /// The key of a Secret.
    pub secret_key_ref: SecretKeyRef,
}

/// The rules for bearer tokens.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OAuth2 {
    /// The required issuer of tokens.
    #[schemars(length(min = 1, max = 2048))]
    pub issuer: String,
    /// The required audience of tokens.
    #[schemars(length(min = 1, max = 512))]
    pub audience: String,
    /// The URL of the issuer's keys (JSON Web Key Set).
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::URL_CEL).message(rules::URL))]
    pub jwks_uri: String,
    /// The scopes that each token must have, in its claim `scope` or `scp`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256), regex(pattern = rules::SCOPE_PATTERN)))]
    pub required_scopes: Vec<String>,
}

/// Settings of the HTTP server.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// The web origins whose pages may send requests, for example `https://portal.example.com`. Pages of the supervisor's
    /// own origin are always permitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 300), regex(pattern = rules::ORIGIN_PATTERN)))]
    pub cors_origins: Vec<String>,
}

/// The Service of the supervisor.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// The kind of Service.
    #[serde(default, rename = "type")]
    pub kind: ServiceKind,
    /// The Service's port.
    #[serde(default = "port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// Annotations of the Service.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub annotations: BTreeMap<String, String>,
}

/// Kinds of Service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceKind {
    /// Reachable within the cluster.
    #[default]
    ClusterIP,
    /// Reachable on a port of every node.
    NodePort,
    /// Reachable through the cloud's load balancer.
    LoadBalancer,
}

const fn number<const N: u32>() -> u32 {
    N
}

fn knowledge_tools() -> Vec<String> {
    KNOWLEDGE_TOOLS.map(str::to_owned).into()
}

const fn yes() -> bool {
    true
}

const fn port() -> u16 {
    8000
}

impl Rag {
    /// The RAG server at this URL with the default limits.
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            headers_from: Vec::new(),
            search_max_calls: 5,
            fetch_document_max_calls: 10,
            max_output_chars: 10_000,
            max_search_results: 3,
            tool_names: knowledge_tools(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            recursion: 500,
            max_context_tokens: 100_000,
            min_messages_to_keep: 4,
            max_tool_output_chars: 50_000,
            compact_output_lines: 50,
            model_timeout_seconds: 300,
            tool_timeout_seconds: 120,
            agent_timeout_seconds: 120,
            mcp_start_timeout_seconds: 60,
            guards: Guards::default(),
        }
    }
}

impl Default for Connectivity {
    fn default() -> Self {
        Self {
            check: true,
            background: true,
            timeout_seconds: 5,
            max_retries: 3,
            retry_delay_seconds: 2,
            startup_delay_seconds: 0,
            refresh_interval_seconds: None,
            fast_check_timeout_seconds: 2,
        }
    }
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            system_prompt: None,
            answer_mode: AnswerMode::default(),
            streaming: true,
            sections: Vec::new(),
        }
    }
}

impl Default for Service {
    fn default() -> Self {
        Self { kind: ServiceKind::default(), port: port(), annotations: BTreeMap::new() }
    }
}
