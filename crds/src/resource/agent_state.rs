//! Where an agent runs and how it is, in the status and in the internal status.

use serde::{Deserialize, Serialize};

use super::derive::JsonSchema;

/// Where an agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AgentPlacement {
    /// In the supervisor's process.
    InProcess,
    /// In a process of its own.
    Remote,
}

/// How an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AgentPhase {
    /// Not started yet.
    Pending,
    /// Usable.
    Ready,
    /// Usable in part: some of its tool servers do not answer.
    Degraded,
    /// Not reachable.
    Unreachable,
    /// Moved away; finishes what it began.
    Draining,
}
