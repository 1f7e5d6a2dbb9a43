//! The placement and the phase of an agent, in the status and in the internal status.

use serde::{Deserialize, Serialize};

use super::derive::JsonSchema;

/// The placement of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AgentPlacement {
    /// In the supervisor's process.
    InProcess,
    /// In a process of its own.
    Remote,
}

/// The phase of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AgentPhase {
    /// Not started yet.
    Pending,
    /// Usable.
    Ready,
    /// Partly usable: some of its tool servers do not respond.
    Degraded,
    /// Not reachable.
    Unreachable,
    /// Replaced by an instance in the other placement; finishes its delegations.
    Draining,
}
