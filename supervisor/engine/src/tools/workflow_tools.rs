//! The tools for self-service workflows.

use caipe_model::ToolSpec;
use serde_json::{Map, Value, json};

use crate::abilities::Abilities;
use crate::form::{Form, REQUEST_INPUT_TOOL};
use crate::workflow::{Workflow, WorkflowStep};

use super::form_tool;

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
    let taking = |argument: &str| {
        let name = json!({ "type": "string", "enum": names, "description": "The name of the workflow." });
        json!({ "type": "object", "properties": { argument: name }, "required": [argument] })
    };
    let spec = |name: &str, description: &str, schema| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema,
    };
    vec![
        spec(
            LIST_TOOL,
            "List the self-service workflows with their steps.",
            json!({ "type": "object", "properties": {}, "required": [] }),
        ),
        spec(
            INVOKE_TOOL,
            "Start a self-service workflow if the user asks for what it does. Its steps run in order, each by its agent, \
             and ask the user for what they need: do not ask before, and write no plan for it. The result says how the \
             workflow ended.",
            taking("task_name"),
        ),
        spec(
            DEFINITION_TOOL,
            "Show the steps of a self-service workflow, without starting it.",
            taking("workflow_name"),
        ),
    ]
}

impl Form {
    /// The form with these arguments of `request_user_input`.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn declared(arguments: &Map<String, Value>) -> Result<Self, String> {
        form_tool::form(REQUEST_INPUT_TOOL, arguments)
    }
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
    let step = |(at, step): (usize, &WorkflowStep)| {
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
