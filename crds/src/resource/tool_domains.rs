//! The tools of this program that an agent has besides those of its servers, and how the agent verifies what it changes.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::derive::{JsonSchema, KubeSchema};
use super::rules;
use super::volume::VolumeClaim;

/// The tool `shell_exec`: commands in a sandbox, on a copy of the virtual files of the conversation.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellTools {
    /// Deadline of a command, in seconds, if it is below `limits.toolTimeoutSeconds`.
    #[serde(default = "number::<60>")]
    #[schemars(range(min = 1, max = 3600))]
    pub timeout_seconds: u32,
    /// Most memory of all processes of a command together, in MiB.
    #[serde(default = "number::<512>")]
    #[schemars(range(min = 16, max = 65_536))]
    pub memory_mebibytes: u32,
    /// Whether commands may use the network, as far as the network policy of the pod lets them.
    #[serde(default)]
    pub network: bool,
}

/// The tool `web_fetch`.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebTools {
    /// The permitted destinations: hosts, `*.domain`, addresses, each with an optional `:port`, and networks; `*` means every
    /// public address.
    #[schemars(length(min = 1, max = 20), extend("items" = destination()))]
    pub allow: Vec<String>,
}

/// The tool `describe_self`. It has no settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Introspection {}

/// The tools `list_models` and `ask_model`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelTools {
    /// The models that the agent may ask: `NAME` at the provider of its own model, or `PROVIDER/NAME` at a provider of
    /// `spec.model` or `spec.fallbacks`.
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 128)))]
    pub allow: Vec<String>,
}

/// The tools `tasks_list` and `tasks_get`: the tasks of the person whose request the agent works on. They only read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskTools {}

/// The tools `memory_save`, `memory_search` and `memory_forget`: facts about the person whose request the agent works on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryTools {}

/// The facts that agents remember about people.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Minutes after which a fact is forgotten, unless it is saved again; 0 means never. The default is a week.
    #[serde(default = "number::<10_080>")]
    #[schemars(range(min = 0, max = 5_256_000))]
    pub ttl_minutes: u32,
    /// Whether the supervisor itself has the tools.
    #[serde(default)]
    pub supervisor: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Self { ttl_minutes: number::<10_080>(), supervisor: false }
    }
}

/// The workspace of an agent: the virtual files of its conversations. Those below `/.scratch/` are shared with the agent that
/// delegates to it.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new(rules::WORKSPACE_VOLUME_FIXED_CEL).message(rules::WORKSPACE_VOLUME_FIXED))]
pub struct Workspace {
    /// Where the agent may write files. The default is `Everywhere`.
    #[serde(default, skip_serializing_if = "WorkspaceWrites::is_everywhere")]
    #[schemars(with = "WorkspaceWrites")]
    pub writes: WorkspaceWrites,
    /// A volume for the files below `/workspace/`, which outlive conversations and which all conversations of the agent share. One pod at
    /// a time uses it: the agent needs the placement `Remote` and has one replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeClaim>,
}

/// Where an agent may write virtual files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WorkspaceWrites {
    #[default]
    Everywhere,
    /// Below `/.scratch/`.
    Scratchpad,
    /// The agent has no tool that writes files.
    Nowhere,
}

impl WorkspaceWrites {
    /// Whether it is the default.
    pub const fn is_everywhere(&self) -> bool {
        matches!(self, Self::Everywhere)
    }
}

/// How an agent verifies what it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// The tools whose success verifies every change; `*` matches any characters. By default, `shell_exec` verifies every change, a
    /// tool that only reads verifies the changes of other tools, and `read_file` and `grep` verify the file that they read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)))]
    pub tools: Vec<String>,
}

/// The schema of an entry of a list of destinations. Its own rule names the invalid entry.
pub(super) fn destination() -> Value {
    let rule = json!({ "rule": rules::A2A_ALLOW_CEL, "message": rules::A2A_ALLOW });
    json!({ "type": "string", "minLength": 1, "maxLength": 253, "x-kubernetes-validations": [rule] })
}

const fn number<const N: u32>() -> u32 {
    N
}
