//! What the operator reports.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use super::agent_state::{AgentPhase, AgentPlacement};
use super::common::list_map;
use super::derive::KubeSchema;

/// The last observed state. `Ready` means that the supervisor answers A2A and every enabled agent is usable.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaipeSupervisorStatus {
    /// The generation of the resource that this status describes; -1 before the first reconcile.
    #[serde(default = "not_observed")]
    pub observed_generation: i64,
    /// The epoch of the spec that the supervisor runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
    /// The hash of that spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_hash: Option<String>,
    /// The URL for clients: that of `card.externalUrl`, or else that of the Service in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The Secret with the keys that the operator has generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys_secret: Option<String>,
    /// The number of supervisor pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The number of supervisor pods that are ready for requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// The labels of the supervisor's pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// `Ready` and `AgentsConnected` always; `SlackReady` with `slack`; `Reconciling`, `Stalled` and `Degraded` only while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = list_map("type"))]
    pub conditions: Vec<Condition>,
    /// Usable and enabled agents, for example `5/6`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_ready: Option<String>,
    /// The number of remote agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_agents: Option<i32>,
    /// The enabled agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = list_map("name"))]
    pub agents: Vec<AgentStatus>,
    /// The budgets and guards that restricted or stopped runs since the current pods started. At most 32, the most frequent ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub limits: Vec<LimitStatus>,
}

/// A budget or a guard that restricted or stopped runs of an agent.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitStatus {
    /// The agent's name; `supervisor` for the supervisor itself.
    pub agent: String,
    /// The name of the limit, for example `tokens` or `repeated_calls`, as in the metric `limits_reached_total`.
    pub limit: String,
    /// How often it did. The number is updated when it has doubled, or when the status changes anyway.
    pub count: i64,
    /// The time of the first one.
    pub since: Time,
}

/// The last observed state of an agent.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// The agent's name.
    pub name: String,
    /// The agent's placement.
    pub placement: AgentPlacement,
    /// The agent's phase.
    pub phase: AgentPhase,
    /// The URL of a remote agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The A2A version of a remote agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Duration of the last probe, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<i64>,
    /// The time of the last probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    /// The number of active delegations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_tasks: Option<i32>,
    /// The fault, or what the agent waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `CredentialsAccepted` once the credentials have been checked; `NamesUnmatched` only while `tools`, `requireApproval` or the
    /// system prompt names a tool that the agent's servers do not offer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = list_map("type"))]
    pub conditions: Vec<Condition>,
}

const fn not_observed() -> i64 {
    -1
}

impl Default for CaipeSupervisorStatus {
    fn default() -> Self {
        Self {
            observed_generation: not_observed(),
            epoch: None,
            spec_hash: None,
            url: None,
            keys_secret: None,
            replicas: None,
            ready_replicas: None,
            selector: None,
            conditions: Vec::new(),
            agents_ready: None,
            remote_agents: None,
            agents: Vec::new(),
            limits: Vec::new(),
        }
    }
}
