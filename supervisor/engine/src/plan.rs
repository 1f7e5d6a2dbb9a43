//! The plan that the user sees.

mod steps;
mod track;

use serde::{Deserialize, Serialize};

use crate::names::{AgentName, CallId};
use crate::plan_step::{PlanStep, StepStatus};

pub(crate) use track::TodoChange;

/// What the plan is made of: the model's to-do list, or else its delegations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// The newest to-do list, as the model wrote it.
    pub todos: Vec<Todo>,
    /// The tasks that were handed to agents; they are the plan as long as there is no to-do list.
    pub tasks: Vec<PlanTask>,
    /// The steps as last emitted.
    pub steps: Vec<PlanStep>,
    /// Whether the run has emitted a plan.
    #[serde(alias = "told")]
    pub shown: bool,
}

/// A task that was handed to an agent, as a part of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanTask {
    /// The call that did it.
    pub call: CallId,
    pub agent: AgentName,
    /// What it was asked, shortened.
    pub title: String,
    pub status: StepStatus,
}

/// An entry of the model's to-do list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// The model's id of it, else its index.
    pub id: String,
    /// The text, usually `[Agent] what to do`.
    pub content: String,
    pub status: StepStatus,
}
