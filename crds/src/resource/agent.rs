//! `spec.agents`: an agent of the catalogue, your own, or an external one.

use serde::{Deserialize, Serialize};

#[cfg(feature = "kubernetes")]
use super::common::list_map;
use super::common::{ConfigMapRef, EnvVar, PodTemplate, Resources, SecretKeyRef, SecretRef};
use super::derive::KubeSchema;
use super::mcp::McpServer;
use super::model::ModelOverride;
use super::rules;

/// One agent. With only a `name` it is the catalogue's; `identity`, `external` and `image` make it another kind.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.name != 'all' && self.name != 'user-input' && self.name != 'rag' && self.name != 'supervisor' && self.name != 'general-purpose'").message(rules::AGENT_RESERVED),
    validation = Rule::new("[has(self.identity), has(self.external), has(self.image)].filter(x, x).size() <= 1").message(rules::AGENT_KIND),
    validation = Rule::new("!(has(self.external) || has(self.image)) || !((has(self.mcp) && size(self.mcp) > 0) || (has(self.tools) && size(self.tools) > 0) || (has(self.requireApproval) && size(self.requireApproval) > 0) || has(self.model))").message(rules::AGENT_FOREIGN_TOOLS),
    validation = Rule::new("!has(self.external) || !(has(self.secretRef) || (has(self.env) && size(self.env) > 0) || has(self.resources) || has(self.podTemplate))").message(rules::AGENT_EXTERNAL_POD),
    validation = Rule::new(rules::SIDECAR_PORTS_CEL).message(rules::SIDECAR_PORTS),
)]
pub struct Agent {
    /// The name: what `distributedAgents` lists and the model calls. In lower case.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// `false` takes the agent out without losing its settings.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Makes it an agent of your own: who it is. Its tools are those of `mcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Makes it an external A2A agent, at a URL. Always remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// Makes it an image of your own that speaks A2A on port 8000. Always remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Tool servers; for an agent of the catalogue they replace the built-in ones.
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
    /// Allow-list of tools; `*` matches any characters. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128)))]
    pub tools: Vec<String>,
    /// Tools that need the approval of a person; `*` matches any characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128)))]
    pub require_approval: Vec<String>,
    /// A model of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelOverride>,
    /// Compute resources of its container while it runs remotely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Anything else of its pod while it runs remotely: a partial pod template, applied over the generated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
}

/// Who an agent of your own is.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.inline) != has(self.configMapRef)").message(rules::TEXT_SOURCE))]
pub struct Identity {
    /// Given here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<InlineIdentity>,
    /// In a `ConfigMap` with the keys `description` and `systemPrompt`, and perhaps `title` and `routingHint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ConfigMapRef>,
}

/// An identity, given in the resource.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InlineIdentity {
    /// The name that people see; made from the agent's name without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub title: Option<String>,
    /// What it does, in a sentence or two.
    #[schemars(length(min = 1, max = 1024))]
    pub description: String,
    /// When the supervisor should use it; the description without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub routing_hint: Option<String>,
    /// Its system prompt.
    #[schemars(length(min = 1, max = 65536))]
    pub system_prompt: String,
}

/// An external A2A agent.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct External {
    /// Its base URL; the card is at `/.well-known/agent-card.json` below it.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(rules::URL_CEL).message(rules::URL))]
    pub url: String,
    /// The key of a Secret with its bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<TokenRef>,
    /// What it does; its card says so without it.
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
    /// The key; `token` without it.
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
}
