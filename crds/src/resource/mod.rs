//! The custom resource `CaipeSupervisor`, `caipe.io/v1alpha1`.
//!
//! Unions are structs of options of which a rule allows exactly one: that keeps the schema structural. Each rule
//! stands twice, as CEL here (the API server's check) and as Rust in [`crate::validate()`] (the check of files and
//! of the operator), under one message.

#![allow(unreachable_pub, reason = "`KubeSchema` repeats each type inside a function")]
#![cfg_attr(
    not(feature = "kubernetes"),
    allow(unused_imports, dead_code, reason = "the schema alone uses them")
)]

pub mod agent;
pub mod agent_state;
pub mod approver;
pub mod budget;
pub mod common;
pub(crate) mod derive;
pub mod mcp;
pub mod model;
pub mod network;
#[cfg(not(feature = "kubernetes"))]
mod object;
pub mod rules;
pub mod settings;
pub mod skills;
pub mod slack;
#[cfg(feature = "kubernetes")]
pub mod status;
pub mod tool_domains;
pub mod volume;
pub mod workflow;

use serde::{Deserialize, Serialize};

use agent::Agent;
use agent_state::AgentPlacement;
use approver::Approver;
use budget::Budgets;
#[cfg(feature = "kubernetes")]
use common::list_map;
use common::{EnvVar, PodTemplate, Resources, ServiceAccount};
use derive::{CustomResource, KubeSchema};
use model::Model;
use network::NetworkPolicy;
use settings::{
    A2aTools, Auth, Card, Condensation, Connectivity, Limits, Prompts, Rag, Server, Service, Store,
};
use skills::Skills;
use slack::Slack;
use tool_domains::Memory;
use workflow::Workflows;

#[cfg(not(feature = "kubernetes"))]
pub use object::CaipeSupervisor;
#[cfg(feature = "kubernetes")]
pub use status::CaipeSupervisorStatus;

/// A supervisor and its agents.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "caipe.io",
    version = "v1alpha1",
    kind = "CaipeSupervisor",
    namespaced,
    shortname = "caipe",
    category = "caipe",
    status = "CaipeSupervisorStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas", label_selector_path = ".status.selector"),
    derive = "PartialEq",
    doc = "A CAIPE supervisor: one A2A endpoint that answers people with the help of the agents listed here, each in the supervisor's own process or in a container of its own.",
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Agents", type_ = "string", json_path = ".status.agentsReady", description = "usable agents of all enabled ones"),
    printcolumn(name = "Remote", type_ = "integer", json_path = ".status.remoteAgents", description = "agents that run remotely"),
    printcolumn(name = "Epoch", type_ = "integer", json_path = ".status.epoch", description = "the spec that the supervisor runs"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Message", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].message"#, priority = 1),
    validation = Rule::new("size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')").message(rules::RESOURCE_NAME),
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(rules::REPLICAS_CEL).message(rules::REPLICAS).field_path(".replicas"),
    validation = Rule::new(rules::VOLUME_FIXED_CEL).message(rules::VOLUME_FIXED),
    validation = Rule::new("(has(self.auth) && has(self.auth.oauth2)) || ((!has(self.approvers) || size(self.approvers) == 0) && (!has(self.agents) || self.agents.all(a, !has(a.approvers) || size(a.approvers) == 0)))").message(rules::APPROVERS_AUTH),
    validation = Rule::new("has(self.skills) || !has(self.agents) || self.agents.all(a, !has(a.skills))").message(rules::SKILLS_UNUSED),
    validation = Rule::new("!has(self.env) || self.env.all(v, !(v.name in ['A2A_AUTH_SHARED_KEY', 'CAIPE_AGENT_KEY', 'CAIPE_OWN_AGENT_KEY', 'CAIPE_STATUS_TOKEN', 'CAIPE_TOOLS_KEY']))").message(rules::ENV_RESERVED),
)]
pub struct CaipeSupervisorSpec {
    /// The language model. If absent, the environment selects it (`LLM_PROVIDER` and the provider's variables).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// The names of remote agents; `all` means every agent. A list that is not empty decides for every agent without a
    /// `placement`: the agents that it does not name run in the supervisor's process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), inner(length(max = 63)))]
    pub distributed_agents: Vec<String>,
    /// Where agents run that have no `placement`, while `distributedAgents` is empty. The default is `InProcess`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AgentPlacement")]
    pub default_placement: Option<AgentPlacement>,
    /// Removed: the API server refuses it. Use `defaultPlacement` or `distributedAgents`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("false").message(rules::DISTRIBUTED_MODE))]
    pub distributed_mode: Option<bool>,
    /// The agents. If absent, the core agents of the catalogue; an empty list means no agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    #[x_kube(merge_strategy = list_map("name"))]
    pub agents: Option<Vec<Agent>>,
    /// The self-service workflows, whose tasks run in order without the model choosing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflows: Option<Workflows>,
    /// The knowledge base: an MCP server with the tools `search` and `fetch_document`. If absent, `ENABLE_RAG` decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rag: Option<Rag>,
    /// Enables the supervisor's tools that call other A2A agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a2a: Option<A2aTools>,
    /// The skills of the supervisor and its agents. If absent, variables decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<Skills>,
    /// The Slack bot of the supervisor. If absent, there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slack: Option<Slack>,
    /// What runs may use: calls, tokens, money and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Budgets>,
    /// The limits of a run.
    #[serde(default)]
    pub limits: Limits,
    /// A model summarizes what no longer fits into the context of an agent's model. Without it, the model reads only which requests
    /// were left out. In both cases their text is kept as virtual files of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condensation: Option<Condensation>,
    /// The store of conversations. The default is `SQLite` on a volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Store>,
    /// The facts about people that agents with `memory` remember.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The probes of remote agents.
    #[serde(default)]
    pub connectivity: Connectivity,
    /// The agent card of the supervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Card>,
    /// Prompts, and the form of answers.
    #[serde(default)]
    pub prompts: Prompts,
    /// The credentials that callers need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Settings of the HTTP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    /// The principals that may decide the approvals of `requireApproval`. The default is the owner of the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub approvers: Vec<Approver>,
    /// The Service of the supervisor.
    #[serde(default)]
    pub service: Service,
    /// The network policies of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkPolicy>,
    /// Supervisor pods; 0 stops the supervisor. More than one needs `store.redis` or `store.mongodb`. `kubectl scale` and a
    /// `HorizontalPodAutoscaler` set this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 50), extend("default" = 1))]
    pub replicas: Option<i32>,
    /// The image of the supervisor and of remote agents. The default is that of the operator's release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// The Secrets with credentials for the registries of the images, in addition to those of the installation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    pub image_pull_secrets: Vec<String>,
    /// Variables of the supervisor's container and of remote agents that run the same program, for example `HTTPS_PROXY`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = list_map("name"))]
    pub env: Vec<EnvVar>,
    /// The account of the supervisor's pods. Agents and tool servers with pods of their own have accounts of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccount>,
    /// Compute resources of the supervisor's container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// A partial pod template for the supervisor's pod, applied over the generated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
}

impl CaipeSupervisorSpec {
    /// The listed agents, or none if the list is absent.
    pub fn agents(&self) -> &[Agent] {
        self.agents.as_deref().unwrap_or_default()
    }

    /// Whether several supervisor pods can use the store at a time.
    #[must_use]
    pub fn has_shared_store(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.server().is_some())
    }
}
