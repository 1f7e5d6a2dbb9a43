//! The response of `GET /internal/status`. The operator waits until an epoch runs before it removes an old instance.
//!
//! The operator and the pods may have different versions: readers ignore unknown fields, and a new field is left out while
//! it has its default. `crds/golden` has the fields of each version, and a test compares them with these types.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::resource::agent_state::{AgentPhase, AgentPlacement};
use crate::resource::derive::JsonSchema;

/// The state of a supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The epoch of the newest accepted spec. Outside a cluster: how often the file was read.
    pub epoch: u64,
    /// The newest epoch for which every agent's instance runs.
    pub running_epoch: u64,
    /// The hash of the spec of `epoch`.
    pub hash: String,
    /// Why the current content of the file was rejected; the last valid spec stays in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Why the supervisor accepts no requests yet, as in `/ready`; empty once it does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// The restrictions under which the supervisor works, each as a sentence; the operator shows them as `Degraded`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How often budgets and guards restricted runs since the process started, the most frequent ones first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitReport>,
    /// Every agent of the spec, in its order.
    pub agents: Vec<AgentReport>,
    /// Old instances that drain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draining: Vec<DrainingInstance>,
}

/// How often a budget or a guard restricted or stopped runs of an agent since the process started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitReport {
    /// The agent's name; `supervisor` for the supervisor itself.
    pub agent: String,
    /// The name of the limit, as in the metric.
    pub limit: String,
    pub count: u64,
    /// The time of the first one, in whole seconds.
    #[cfg_attr(feature = "kubernetes", schemars(with = "String"))]
    pub since: Timestamp,
}

/// The state of an agent's current instance, which receives new delegations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentReport {
    pub name: String,
    /// Where it runs.
    pub placement: AgentPlacement,
    pub phase: AgentPhase,
    /// The newest epoch that the instance corresponds to.
    pub epoch: u64,
    /// The URL of a remote instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The A2A version of a remote agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// How long its last probe took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// The time of its last probe, in whole seconds as Kubernetes' times are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kubernetes", schemars(with = "Option<String>"))]
    pub last_probe_time: Option<Timestamp>,
    /// Delegations under way.
    pub active_tasks: u64,
    /// Its tools; for a remote agent, the skills on its card.
    pub tools: Vec<String>,
    /// What is wrong, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether its credentials are accepted; absent until the first check, and for an agent without a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<CredentialReport>,
    /// The names in `tools`, `requireApproval` and the system prompt that are no tool of its servers, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<String>,
    /// The next instance, while it is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextInstance>,
}

impl AgentReport {
    /// An idle agent without further details.
    pub fn new(name: &str, placement: AgentPlacement, phase: AgentPhase, epoch: u64) -> Self {
        Self {
            name: name.to_owned(),
            placement,
            phase,
            epoch,
            endpoint: None,
            protocol_version: None,
            latency_ms: None,
            last_probe_time: None,
            active_tasks: 0,
            tools: Vec::new(),
            message: None,
            credentials: None,
            unmatched: Vec::new(),
            next: None,
        }
    }
}

/// The result of the last check of an agent's credentials: one call of a tool that only reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialReport {
    pub reason: CredentialReason,
    /// What the tool answered, and where to get the credentials; without secrets.
    pub message: String,
}

/// The result of a check of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CredentialReason {
    /// The API answered.
    Accepted,
    /// The agent is not offered the tool that would show it.
    NotChecked,
    /// The API cannot be reached.
    Unreachable,
    /// The API accepts the credentials, but not for this call.
    ScopeMissing,
    /// The API refuses the credentials.
    Refused,
    /// The call failed for another reason. Readers also take unknown values for this one.
    #[serde(other)]
    Failed,
}

impl CredentialReason {
    /// The name, as in the conditions of an agent.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::NotChecked => "NotChecked",
            Self::Failed => "Failed",
            Self::Unreachable => "Unreachable",
            Self::ScopeMissing => "ScopeMissing",
            Self::Refused => "Refused",
        }
    }

    /// The severity: of several results the worst counts.
    pub const fn severity(self) -> u8 {
        match self {
            Self::Accepted => 0,
            Self::NotChecked => 1,
            Self::Failed => 2,
            Self::Unreachable => 3,
            Self::ScopeMissing => 4,
            Self::Refused => 5,
        }
    }
}

/// An agent's next instance, which is not ready yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextInstance {
    /// Where it runs.
    pub placement: AgentPlacement,
    pub phase: AgentPhase,
    /// The URL of a remote instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// What the instance waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// An old instance that drains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrainingInstance {
    /// The agent's name.
    pub name: String,
    /// Where it runs.
    pub placement: AgentPlacement,
    /// The URL of a remote instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Delegations under way.
    pub active_tasks: u64,
}
