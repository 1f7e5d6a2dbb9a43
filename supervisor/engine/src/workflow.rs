//! Self-service workflows: steps that agents work on in order, without the model choosing.

use serde::{Deserialize, Serialize};

use crate::approved::{self, DeclaredCall};
use crate::form::Form;
use crate::names::AgentName;

/// The agent of a step that asks the user: it has the built-in tools, and no tools of servers.
pub const USER_INPUT_AGENT: &str = "user_input";

/// The text before the calls that a form approves.
const APPROVES: &str = "By submitting this form you approve these calls, each once and with exactly these arguments, in which \
                        {{ … }} is the value of a field. Any other call asks you as usual.";

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
    /// The calls of the agent that the workflow's first form shows and approves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<DeclaredCall>,
}

impl Workflow {
    /// The agents that the workflow needs, other than [`USER_INPUT_AGENT`].
    pub fn agents(&self) -> impl Iterator<Item = &AgentName> {
        self.steps.iter().map(|step| &step.agent).filter(|agent| agent.as_str() != USER_INPUT_AGENT)
    }

    /// The form of a step. The first one also shows the calls that it approves.
    pub(crate) fn form(&self, at: usize) -> Option<Form> {
        let mut form = self.steps.get(at)?.form.clone()?;
        let is_first = self.steps.iter().position(|step| step.form.is_some()) == Some(at);
        let steps = self.steps.iter().skip(at).filter(|_| is_first);
        let calls = steps.flat_map(|step| step.calls.iter().map(move |call| (&step.agent, call)));
        let line = |(agent, call): (&AgentName, &DeclaredCall)| {
            format!("- {agent}: {}", approved::line(&call.tool, &call.arguments))
        };
        let lines: Vec<String> = calls.map(line).collect();
        if !lines.is_empty() {
            let texts = [form.description, format!("{APPROVES}\n{}", lines.join("\n"))];
            form.description =
                texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        }
        Some(form)
    }
}
