//! The tools for self-service workflows.

use caipe_model::ToolSpec;
use serde_json::{Map, Value, json};

use crate::abilities::Abilities;
use crate::workflow::Workflow;

use super::specs::{object, spec};

/// The tool that lists the workflows.
pub(crate) const LIST_TOOL: &str = "list_self_service_workflows";

/// The tool that starts a workflow.
pub(crate) const INVOKE_TOOL: &str = "invoke_self_service_task";

/// The tool that shows the steps of a workflow.
pub(crate) const DEFINITION_TOOL: &str = "get_workflow_definition";

/// The names of the tools for workflows.
pub const WORKFLOW_TOOLS: [&str; 3] = [LIST_TOOL, INVOKE_TOOL, DEFINITION_TOOL];

/// The argument that names a workflow, as in upstream's tools.
const NAMES: [&str; 2] = ["task_name", "workflow_name"];

/// The tools for the workflows; none if there is no workflow.
pub(super) fn specs(abilities: &Abilities) -> Vec<ToolSpec> {
    if abilities.workflows.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = abilities.workflows.iter().map(|workflow| workflow.name.as_str()).collect();
    let named = |argument: &str| {
        let name = json!({ "type": "string", "enum": names, "description": "The name of the workflow." });
        object(&json!({ argument: name }), &[argument])
    };
    vec![
        spec(LIST_TOOL, "List the self-service workflows with their steps.", object(&json!({}), &[])),
        spec(
            INVOKE_TOOL,
            "Start a self-service workflow if the user asks for what it does. Its steps run in order, each by its agent, \
             and ask the user for what they need: do not ask before, and write no plan for it. The result says how the \
             workflow ended.",
            named("task_name"),
        ),
        spec(
            DEFINITION_TOOL,
            "Show the steps of a self-service workflow, without starting it.",
            named("workflow_name"),
        ),
    ]
}

/// Answers a call of the tools that only read.
pub(crate) fn answer(
    abilities: &Abilities,
    tool: &str,
    arguments: &Map<String, Value>,
) -> Result<String, String> {
    if tool == DEFINITION_TOOL {
        return named(abilities, arguments).map(definition);
    }
    let listed: Vec<String> = abilities.workflows.iter().map(definition).collect();
    Ok(listed.join("\n\n"))
}

fn definition(workflow: &Workflow) -> String {
    let step = |(at, step): (usize, &crate::workflow::WorkflowStep)| {
        let form = if step.form.is_some() { ", a form" } else { "" };
        format!("{}. {} ({}{form})", at + 1, step.title, step.agent)
    };
    let steps: Vec<String> = workflow.steps.iter().enumerate().map(step).collect();
    format!("{}\n{}", workflow.name, steps.join("\n"))
}

/// The workflow that a call names, in any case. The error is for the model.
pub(crate) fn named<'a>(
    abilities: &'a Abilities,
    arguments: &Map<String, Value>,
) -> Result<&'a Workflow, String> {
    let name = NAMES.iter().find_map(|key| arguments.get(*key)?.as_str()).unwrap_or_default().trim();
    let is_named = |workflow: &&Workflow| workflow.name.to_lowercase() == name.to_lowercase();
    abilities.workflows.iter().find(is_named).ok_or_else(|| {
        let names: Vec<String> =
            abilities.workflows.iter().map(|workflow| format!("{:?}", workflow.name)).collect();
        let shown: String = name.chars().take(80).collect();
        format!("failed to find the workflow {shown:?}. There are: {}.", names.join(", "))
    })
}
