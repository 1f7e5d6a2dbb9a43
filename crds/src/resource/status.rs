//! What the operator reports.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use super::agent_state::{AgentPhase, AgentPlacement};
use super::common::list_map;
use super::derive::KubeSchema;

/// What was last seen. `Ready` means: it answers A2A with every enabled agent usable.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaipeSupervisorStatus {
    /// The generation that this status is about; -1 before the first pass.
    #[serde(default = "not_observed")]
    pub observed_generation: i64,
    /// The epoch of the spec that the supervisor runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
    /// The hash of that spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_hash: Option<String>,
    /// `Ready` and `AgentsConnected` always; `Reconciling`, `Stalled` and `Degraded` only while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = list_map("type"))]
    pub conditions: Vec<Condition>,
    /// Usable agents of all enabled ones, as `5/6`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_ready: Option<String>,
    /// How many agents run remotely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_agents: Option<i32>,
    /// Each enabled agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = list_map("name"))]
    pub agents: Vec<AgentStatus>,
}

/// What was last seen of an agent.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub placement: AgentPlacement,
    /// The agent's phase.
    pub phase: AgentPhase,
    /// Where a remote one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The A2A version that it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// How long its last probe took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<i64>,
    /// When it was last probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    /// Delegations under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_tasks: Option<i32>,
    /// What is wrong, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
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
            conditions: Vec::new(),
            agents_ready: None,
            remote_agents: None,
            agents: Vec::new(),
        }
    }
}
