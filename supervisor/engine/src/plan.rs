//! The plan that the user sees (upstream contract 3.4).

use serde::{Deserialize, Serialize};

/// What the plan is made of: the model's to-do list, or else its delegations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// The newest to-do list, as the model wrote it.
    pub todos: Vec<Todo>,
    /// The steps as last told.
    pub steps: Vec<PlanStep>,
}

/// An entry of the model's to-do list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// The model's id of it, else its index.
    pub id: String,
    /// The text, usually `[Agent] what to do`.
    pub content: String,
    /// How far it is.
    pub status: StepStatus,
}

/// A step as the user sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// `step-` and 12 hex digits of a hash of agent and title.
    pub step_id: String,
    /// What is done.
    pub title: String,
    /// Who does it, for display.
    pub agent: String,
    /// How far it is.
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

/// Why a plan is told.
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
    /// The run ends: every open step is closed.
    Closing,
}
