//! The plan that the user sees.

mod steps;
mod updates;

use serde::{Deserialize, Serialize};

use crate::names::{AgentName, CallId};
use crate::plan_step::{PlanStep, StepStatus};

/// The plan of a run: the model's to-do list or, without one, its delegations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// The newest to-do list, as the model wrote it.
    pub todos: Vec<Todo>,
    /// The delegated tasks; they are the plan as long as there is no to-do list.
    pub tasks: Vec<PlanTask>,
    /// The steps as last emitted.
    pub steps: Vec<PlanStep>,
    /// Whether the run has emitted a plan.
    #[serde(alias = "told")]
    pub shown: bool,
}

/// A delegated task, as a part of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanTask {
    pub call: CallId,
    pub agent: AgentName,
    /// The beginning of the agent's prompt.
    pub title: String,
    pub status: StepStatus,
}

/// An entry of the model's to-do list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// The id that the model gave, else the index.
    pub id: String,
    /// The text, usually `[Agent] what to do`.
    pub content: String,
    pub status: StepStatus,
    /// Whether the step is not run because an earlier one failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}
