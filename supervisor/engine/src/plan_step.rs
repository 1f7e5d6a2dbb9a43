//! The steps of the plan that the user sees.

use serde::{Deserialize, Serialize};

/// A step as the user sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// `step-` and 12 hex digits of a hash of agent and title.
    pub step_id: String,
    pub title: String,
    /// Who does it, for display.
    pub agent: String,
    pub status: StepStatus,
    /// Its place, from 0.
    pub order: usize,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Failed,
}

/// Why a plan is emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanCause {
    /// The model wrote its to-do list.
    Todos,
    /// A task was handed to an agent.
    Delegation,
    /// An agent finished its task.
    TaskCompleted,
    /// The list changed on the way.
    Progress,
    /// The run continues after a human has answered; the plan is unchanged.
    Resumed,
    /// The run ends with an answer: every open step is closed.
    Closing,
    /// The run ends without one: what was under way has failed.
    GivenUp,
}
