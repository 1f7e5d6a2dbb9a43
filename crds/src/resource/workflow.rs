//! Self-service workflows.

use serde::{Deserialize, Serialize};

use super::common::ConfigMapKeyRef;
use super::derive::KubeSchema;
use super::rules;

/// The self-service workflows of the supervisor.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.inline) != has(self.configMapRef)").message(rules::TEXT_SOURCE))]
pub struct Workflows {
    /// The workflows themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    pub inline: Option<Vec<Workflow>>,
    /// A key of a `ConfigMap` with the workflows in the format of `task_config.yaml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ConfigMapKeyRef>,
}

/// A workflow: tasks that run in order, without the model choosing.
///
/// Each text may name variables of the supervisor that begin with `WORKFLOW_`, as `${WORKFLOW_ORG}`.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workflow {
    /// The name, by which people ask for it.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// The tasks.
    #[schemars(length(min = 1, max = 20))]
    pub tasks: Vec<WorkflowTask>,
}

/// A task of a workflow.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowTask {
    /// The text that the user sees in the plan.
    #[schemars(length(min = 1, max = 200))]
    pub display_text: String,
    /// What the agent shall do. Not needed for a task with a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16384))]
    pub llm_prompt: Option<String>,
    /// The name of the agent; `user_input` asks the user.
    #[schemars(length(min = 1, max = 63))]
    pub subagent: String,
    /// The form of a task of `user_input`. Without it, a model makes the form that the prompt describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<WorkflowForm>,
    /// The calls of the agent that the workflow's first form, in a task before this one, shows and approves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub calls: Vec<WorkflowCall>,
}

/// A call of a tool. Any call that differs from it waits for a person as usual.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowCall {
    /// The tool, also as `server/tool`.
    #[schemars(length(min = 1, max = 128))]
    pub tool: String,
    /// All arguments, as the text of a JSON object. A text in it may contain values of the form, as `{{ fieldName }}`; a text
    /// that is one value has the value's type, and is left out if the field is empty.
    #[schemars(length(min = 2, max = 4096))]
    pub arguments: String,
}

/// A form that needs no model.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowForm {
    /// The heading.
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    /// What is asked and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub description: Option<String>,
    /// The fields.
    #[schemars(length(min = 1, max = 50))]
    pub fields: Vec<WorkflowField>,
}

/// A field of a form.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowField {
    /// The key of the answer.
    #[schemars(length(min = 1, max = 100))]
    pub field_name: String,
    /// The name for people. The default is the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub field_label: Option<String>,
    /// What is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    pub field_description: Option<String>,
    /// The type: text, textarea, select, multiselect, boolean, number, url, email or date. The default is select for a field
    /// with `fieldValues`, else text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub field_type: Option<String>,
    /// The choices of a select or multiselect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 200)))]
    pub field_values: Vec<String>,
    /// An example of a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub placeholder: Option<String>,
    /// The value that holds if the user gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub default_value: Option<String>,
    /// The least number, characters or choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1_000_000_000, max = 1_000_000_000))]
    pub min: Option<i64>,
    /// The greatest number, the most characters or choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1_000_000_000, max = 1_000_000_000))]
    pub max: Option<i64>,
    /// Whether the user must give a value. The default is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}
