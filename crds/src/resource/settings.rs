//! The supervisor's own settings: knowledge base, bounds, store, probing, card, prompts, access.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::common::{SecretKeyRef, SecretRef, TextSource};
use super::derive::{JsonSchema, KubeSchema};
use super::rules;

/// The knowledge base. (Seeds' variables: `ENABLE_RAG`, `RAG_SERVER_URL`, `SEARCH_MAX_CALLS`, …)
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rag {
    /// The RAG server's base URL.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::URL_CEL).message(rules::URL))]
    pub url: String,
    /// Most `search` calls of one request.
    #[serde(default = "number::<5>")]
    #[schemars(range(min = 1, max = 1000))]
    pub search_max_calls: u32,
    /// Most `fetch_document` calls of one request.
    #[serde(default = "number::<10>")]
    #[schemars(range(min = 1, max = 1000))]
    pub fetch_document_max_calls: u32,
    /// Most characters of one result; more is cut.
    #[serde(default = "number::<10_000>")]
    #[schemars(range(min = 100, max = 1_000_000))]
    pub max_output_chars: u32,
    /// Most results of one search.
    #[serde(default = "number::<3>")]
    #[schemars(range(min = 1, max = 100))]
    pub max_search_results: u32,
}

/// Tools that ask A2A agents of others: the external ones of `agents` by name, and what `allow` lists by URL.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct A2aTools {
    /// Where URLs may lead: hosts, `*.domain`, addresses, each with `:port` if need be, networks; `*` is every public
    /// address. Empty: nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("items" = destination()))]
    pub allow: Vec<String>,
}

/// The schema of an entry: a rule of its own tells which one is wrong.
fn destination() -> Value {
    let rule = json!({ "rule": rules::A2A_ALLOW_CEL, "message": rules::A2A_ALLOW });
    json!({ "type": "string", "minLength": 1, "maxLength": 253, "x-kubernetes-validations": [rule] })
}

/// Bounds of one run.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Most steps of a run before it must answer from what it has.
    #[serde(default = "number::<500>")]
    #[schemars(range(min = 1, max = 100_000))]
    pub recursion: u32,
    /// Most tokens of a conversation before it is compacted.
    #[serde(default = "number::<100_000>")]
    #[schemars(range(min = 1000, max = 10_000_000))]
    pub max_context_tokens: u32,
    /// Messages that compaction always keeps.
    #[serde(default = "number::<4>")]
    #[schemars(range(min = 1, max = 1000))]
    pub min_messages_to_keep: u32,
    /// Most characters of one tool result; more is cut.
    #[serde(default = "number::<50_000>")]
    #[schemars(range(min = 100, max = 10_000_000))]
    pub max_tool_output_chars: u32,
    /// Deadline of one model call, in seconds. `LLM_TIMEOUT_SECONDS` overrides it.
    #[serde(default = "number::<300>")]
    #[schemars(range(min = 1, max = 86_400))]
    pub model_timeout_seconds: u32,
    /// Deadline of one tool call, in seconds.
    #[serde(default = "number::<120>")]
    #[schemars(range(min = 1, max = 86_400))]
    pub tool_timeout_seconds: u32,
    /// Longest silence of a remote agent, in seconds.
    #[serde(default = "number::<120>")]
    #[schemars(range(min = 1, max = 86_400))]
    pub agent_timeout_seconds: u32,
    /// Deadline for a tool server to list its tools after its start, in seconds.
    #[serde(default = "number::<60>")]
    #[schemars(range(min = 1, max = 3600))]
    pub mcp_start_timeout_seconds: u32,
}

/// Where conversations are stored; `SQLite` by default.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Store {
    /// A file on a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sqlite: Option<Sqlite>,
    /// Redis; the Secret's variable is `REDIS_URL`. Not supported by this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("false").message(rules::UNSUPPORTED))]
    pub redis: Option<ExternalStore>,
    /// MongoDB; the Secret's variable is `MONGODB_URI`. Not supported by this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("false").message(rules::UNSUPPORTED))]
    pub mongodb: Option<ExternalStore>,
}

/// A file on a volume.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sqlite {
    /// The size of the volume.
    #[serde(default = "volume_size")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))").message(rules::VOLUME_SIZE))]
    pub size: String,
    /// Its storage class; the cluster's default without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')").message(rules::STORAGE_CLASS))]
    pub storage_class_name: Option<String>,
}

/// A store outside the pod.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalStore {
    /// The Secret with the connection string.
    pub secret_ref: SecretRef,
    /// The database (MongoDB) or key prefix (Redis).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9_.:-]+$"))]
    pub database: Option<String>,
    /// Forget a conversation after so many minutes without a change; 0 is never.
    #[serde(default)]
    #[schemars(range(min = 0, max = 5_256_000))]
    pub ttl_minutes: u32,
    /// Refuse to serve while it cannot be reached, instead of going on in memory with a warning.
    #[serde(default)]
    pub required: bool,
}

/// How remote agents are probed.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connectivity {
    /// Probe remote agents before the first request.
    #[serde(default = "yes")]
    pub check: bool,
    /// Probe them again and again, so that a late one joins by itself.
    #[serde(default = "yes")]
    pub background: bool,
    /// Deadline of one probe, in seconds.
    #[serde(default = "number::<5>")]
    #[schemars(range(min = 1, max = 300))]
    pub timeout_seconds: u32,
    /// Further attempts after a failed one.
    #[serde(default = "number::<3>")]
    #[schemars(range(min = 0, max = 100))]
    pub max_retries: u32,
    /// Wait before the first further attempt, in seconds; doubles each time.
    #[serde(default = "number::<2>")]
    #[schemars(range(min = 0, max = 300))]
    pub retry_delay_seconds: u32,
    /// Wait before the first probe, in seconds.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3600))]
    pub startup_delay_seconds: u32,
    /// Time between background probes of an agent that answers, in seconds; 1.5 without it, so that a dead one is
    /// shown within five.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub refresh_interval_seconds: Option<u32>,
    /// Deadline of one background probe, in seconds.
    #[serde(default = "number::<2>")]
    #[schemars(range(min = 1, max = 300))]
    pub fast_check_timeout_seconds: u32,
}

/// How the supervisor presents itself.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub description: Option<String>,
    /// The URL under which clients outside the cluster reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::URL_CEL).message(rules::URL))]
    pub external_url: Option<String>,
    /// Example questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 512)))]
    pub skill_examples: Vec<String>,
}

/// Prompts and the form of answers.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompts {
    /// Replaces the supervisor's system prompt. Placeholders: `{tool_instructions}`, `{rag_instructions}`,
    /// `{final_answer_instructions}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<TextSource>,
    /// How the model marks its final answer: by a tool call, or by the marker `[FINAL ANSWER]`.
    #[serde(default)]
    pub answer_mode: AnswerMode,
    /// Whether answers stream token by token.
    #[serde(default = "yes")]
    pub streaming: bool,
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

/// Who may call; both may be set, then either will do.
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
    /// Where it is.
    pub secret_key_ref: SecretKeyRef,
}

/// How bearer tokens are checked.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OAuth2 {
    /// The issuer that tokens must name.
    #[schemars(length(min = 1, max = 2048))]
    pub issuer: String,
    /// The audience that tokens must name.
    #[schemars(length(min = 1, max = 512))]
    pub audience: String,
    /// The issuer's keys.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::URL_CEL).message(rules::URL))]
    pub jwks_uri: String,
    /// The scopes that each token must have, in its claim `scope` or `scp`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 256), regex(pattern = rules::SCOPE_PATTERN)))]
    pub required_scopes: Vec<String>,
}

/// How the supervisor answers HTTP requests.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// The web origins whose pages may call, as `https://portal.example.com`. Pages of the supervisor's own origin always
    /// may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 300), regex(pattern = rules::ORIGIN_PATTERN)))]
    pub cors_origins: Vec<String>,
}

/// How the supervisor is exposed in the cluster.
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
    /// Within the cluster.
    #[default]
    ClusterIP,
    /// On a port of every node.
    NodePort,
    /// Behind the cloud's load balancer.
    LoadBalancer,
}

const fn number<const N: u32>() -> u32 {
    N
}

const fn yes() -> bool {
    true
}

const fn port() -> u16 {
    8000
}

fn volume_size() -> String {
    "1Gi".to_owned()
}

impl Default for Sqlite {
    fn default() -> Self {
        Self { size: volume_size(), storage_class_name: None }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            recursion: 500,
            max_context_tokens: 100_000,
            min_messages_to_keep: 4,
            max_tool_output_chars: 50_000,
            model_timeout_seconds: 300,
            tool_timeout_seconds: 120,
            agent_timeout_seconds: 120,
            mcp_start_timeout_seconds: 60,
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
        Self { system_prompt: None, answer_mode: AnswerMode::default(), streaming: true }
    }
}

impl Default for Service {
    fn default() -> Self {
        Self { kind: ServiceKind::default(), port: port(), annotations: BTreeMap::new() }
    }
}
