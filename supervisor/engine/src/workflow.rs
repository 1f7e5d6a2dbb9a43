//! Self-service workflows: steps that agents work on in order, without the model choosing.

use serde::{Deserialize, Serialize};

use crate::form::Form;
use crate::names::AgentName;

/// The agent of a step that asks the user: it has the built-in tools, and no tools of servers.
pub const USER_INPUT_AGENT: &str = "user_input";

/// A workflow that the model can start by its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    pub name: String,
    pub steps: Vec<WorkflowStep>,
}

/// One step of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowStep {
    /// The text that the user sees in the plan.
    pub title: String,
    pub agent: AgentName,
    /// What the agent shall do; without meaning for a step with a form.
    pub prompt: String,
    /// The form that the user fills in, in place of an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
}

impl Workflow {
    /// The agents that the workflow needs, other than [`USER_INPUT_AGENT`].
    pub fn agents(&self) -> impl Iterator<Item = &AgentName> {
        self.steps.iter().map(|step| &step.agent).filter(|agent| agent.as_str() != USER_INPUT_AGENT)
    }
}
