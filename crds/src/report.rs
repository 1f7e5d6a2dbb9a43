//! The answer of `GET /internal/status`: for the operator, which waits for an epoch to run before it removes an old
//! instance, and for people.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::resource::agent_state::{AgentPhase, AgentPlacement};

/// The state of a supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The epoch of the newest accepted spec. Outside a cluster: how often the file was read.
    pub epoch: u64,
    /// The newest epoch of which every agent runs its instance.
    pub running_epoch: u64,
    /// The hash of the spec of `epoch`.
    pub hash: String,
    /// Why the current content of the file was refused; the last valid spec stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Why it accepts no requests yet, as in `/ready`; empty once it does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// The restrictions under which the supervisor works, each as a sentence; the operator shows them as `Degraded`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Every agent of the spec, in its order.
    pub agents: Vec<AgentReport>,
    /// Old instances that finish their delegations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draining: Vec<DrainingHome>,
}

/// The state of an agent's current instance, which gets new delegations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentReport {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub placement: AgentPlacement,
    /// Its phase.
    pub phase: AgentPhase,
    /// The epoch that this home is of, or the newest one that changes nothing of it.
    pub epoch: u64,
    /// Where a remote one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The A2A version that it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// How long its last probe took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// The time of its last probe, in whole seconds as Kubernetes' times are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Timestamp>,
    /// Delegations under way.
    pub active_tasks: u64,
    /// Its tools; of a remote one, the skills on its card.
    pub tools: Vec<String>,
    /// What is wrong, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The home that it shall have and that is not ready yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextHome>,
}

impl AgentReport {
    /// Of an agent of which nothing else is known and that does nothing.
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
            next: None,
        }
    }
}

/// A home that is being made ready.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextHome {
    /// Where it is.
    pub placement: AgentPlacement,
    /// How far it is.
    pub phase: AgentPhase,
    /// Where a remote one shall answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A home that finishes what it began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainingHome {
    /// Whose home it was.
    pub name: String,
    /// Where it is.
    pub placement: AgentPlacement,
    /// Where a remote one answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Delegations under way.
    pub active_tasks: u64,
}
