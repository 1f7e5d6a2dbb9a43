//! The steps of the plan that the user sees.

use serde::{Deserialize, Serialize};

/// A step as the user sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// `step-` and 12 hex digits of a hash of agent and title.
    pub step_id: String,
    pub title: String,
    /// The agent's name, for display.
    pub agent: String,
    pub status: StepStatus,
    /// Whether the step is failed because an earlier one failed. The statuses of the wire have no word for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// The index in the plan.
    pub order: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    #[default]
    Pending,
    InProgress,
    Completed,
    Failed,
}

/// Why a plan is emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanCause {
    /// The model wrote its to-do list.
    Todos,
    /// A task was delegated.
    Delegation,
    /// An agent finished its task.
    TaskCompleted,
    /// The to-do list changed.
    Progress,
    /// The run continues after a person answered; the plan is unchanged.
    Resumed,
    /// The run ends with an answer: every open step is closed.
    Closing,
    /// The run ends without an answer: the steps in progress are closed.
    GivenUp,
}
