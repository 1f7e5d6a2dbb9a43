//! The self-service workflows: of the resource, of a `ConfigMap` or of the file `task_config.yaml`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::catalogue;
use crate::fault::Fault;
use crate::names::normal;
use crate::rendered::RenderedAgent;
use crate::resource::workflow::{Workflow, WorkflowTask};
use crate::yaml::parse;

use super::{Context, template};

/// The agent of a task that asks the user, and the name that it has in older files of upstream.
const USER_INPUT: [&str; 2] = ["user_input", "caipe"];

/// The begin of the names of the variables that a workflow may use, so that none reads a credential into a prompt.
pub const VARIABLES: &str = "WORKFLOW_";

/// The limits of all workflows together; the schema has the same for the resource.
const MOST_WORKFLOWS: usize = 50;
const MOST_TASKS: usize = 20;
const MOST_FIELDS: usize = 50;
const MOST_CALLS: usize = 5;
const MOST_BYTES: usize = 200_000;

/// The keys of a task, of a call, of a form and of a field in a `task_config.yaml`.
const TASK_KEYS: [&str; 5] = ["display_text", "subagent", "llm_prompt", "form", "calls"];
const CALL_KEYS: [&str; 2] = ["tool", "arguments"];
const FORM_KEYS: [&str; 3] = ["title", "description", "fields"];
const FIELD_KEYS: [&str; 10] = [
    "field_name",
    "field_label",
    "field_description",
    "field_type",
    "field_values",
    "placeholder",
    "default_value",
    "min",
    "max",
    "required",
];

/// The workflows of the text of a `task_config.yaml`: `<name>: { tasks: [{ display_text, llm_prompt, subagent, form }] }`.
///
/// # Errors
/// When the text is not in this format; says where.
pub fn read_task_config(text: &str) -> Result<Vec<Workflow>, Fault> {
    let Value::Object(named) = parse(text)? else {
        let message = "must be an object with the tasks of each workflow by its name";
        return Err(Fault::new("", message));
    };
    named.into_iter().map(|(name, value)| workflow(name, &value)).collect()
}

fn workflow(name: String, value: &Value) -> Result<Workflow, Fault> {
    if let Some(message) = unknown_key(value, &["tasks"]) {
        return Err(Fault::new(&*name, message));
    }
    let tasks = value.get("tasks").and_then(Value::as_array).cloned();
    let tasks = tasks.ok_or_else(|| Fault::new(&*name, "must have `tasks`, a list"))?;
    let task = |(at, value)| {
        let path = format!("{name}.tasks[{at}]");
        let value = in_camel_case(value);
        match unknown_in_task(&value) {
            Some(message) => Err(Fault::new(path, message)),
            None => serde_json::from_value::<WorkflowTask>(value)
                .map_err(|error| Fault::new(path, error.to_string())),
        }
    };
    let tasks = tasks.into_iter().enumerate().map(task).collect::<Result<_, _>>()?;
    Ok(Workflow { name, tasks })
}

/// Why a task has a key that means nothing, at any depth.
fn unknown_in_task(task: &Value) -> Option<String> {
    let form = task.get("form");
    let fields = form.and_then(|form| form.get("fields")).and_then(Value::as_array);
    let mut in_fields = fields.into_iter().flatten().filter_map(|field| unknown_key(field, &FIELD_KEYS));
    let in_form = || form.and_then(|form| unknown_key(form, &FORM_KEYS));
    let calls = task.get("calls").and_then(Value::as_array);
    let mut in_calls = calls.into_iter().flatten().filter_map(|call| unknown_key(call, &CALL_KEYS));
    unknown_key(task, &TASK_KEYS).or_else(in_form).or_else(|| in_fields.next()).or_else(|| in_calls.next())
}

fn unknown_key(value: &Value, known: &[&str]) -> Option<String> {
    let is_known = |key: &&String| known.iter().any(|known| camel_case(known) == camel_case(key));
    let unknown = value.as_object()?.keys().find(|key| !is_known(key))?;
    Some(format!("the key `{unknown}` is not known; the keys are {}", known.join(", ")))
}

/// The value with keys such as `display_text` as `displayText`. The arguments of a call become their JSON text, and a number or
/// a truth value as default becomes a text.
fn in_camel_case(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let renamed = object.into_iter().map(|(key, value)| {
                // The keys of a call's arguments are those of its tool.
                if key == "arguments" && value.is_object() {
                    return (key, Value::String(value.to_string()));
                }
                let (key, value) = (camel_case(&key), in_camel_case(value));
                let is_scalar = key == "defaultValue" && (value.is_number() || value.is_boolean());
                let value = if is_scalar { Value::String(value.to_string()) } else { value };
                (key, value)
            });
            Value::Object(renamed.collect::<Map<_, _>>())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(in_camel_case).collect()),
        value => value,
    }
}

fn camel_case(key: &str) -> String {
    let mut parts = key.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| {
        let mut letters = part.chars();
        name + &letters
            .next()
            .map(|first| first.to_ascii_uppercase())
            .into_iter()
            .chain(letters)
            .collect::<String>()
    })
}

pub(super) fn workflows(cx: &mut Context<'_>, agents: &[RenderedAgent]) -> Vec<Workflow> {
    let Some(declared) = cx.resource.spec.workflows.as_ref() else { return Vec::new() };
    let (path, workflows) = match &declared.config_map_ref {
        None => ("spec.workflows.inline", declared.inline.clone().unwrap_or_default()),
        Some(reference) => {
            let path = "spec.workflows.configMapRef";
            let text = cx.config_map_key(path, &reference.name, &reference.key);
            let read = text.map(read_task_config).transpose();
            let read = read.map_err(|fault| Fault::new(path, fault.to_string()));
            (path, cx.read(read).unwrap_or_default())
        }
    };
    let mut workflows = workflows;
    for task in workflows.iter_mut().flat_map(|workflow| &mut workflow.tasks) {
        task.subagent = normal(&task.subagent);
        if USER_INPUT.contains(&task.subagent.as_str()) {
            USER_INPUT[0].clone_into(&mut task.subagent);
        }
    }
    cx.faults.extend(faults(path, &workflows));
    warn_of_agents(cx, path, &workflows, agents);
    leave_out_calls(cx, path, &mut workflows, agents);
    workflows
}

/// Every fault of the workflows, each with its place below `path`.
fn faults(path: &str, workflows: &[Workflow]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut names = BTreeSet::new();
    let bytes = serde_json::to_string(workflows).map_or(usize::MAX, |text| text.len());
    if workflows.len() > MOST_WORKFLOWS || bytes > MOST_BYTES {
        let message = format!("give at most {MOST_WORKFLOWS} workflows of together {MOST_BYTES} bytes");
        faults.push(Fault::new(path, message));
    }
    for workflow in workflows {
        let path = format!("{path}[{}]", workflow.name);
        if !names.insert(workflow.name.trim().to_lowercase()) {
            faults.push(Fault::new(&*path, "another workflow has this name already: names must differ"));
        }
        if workflow.name.trim().is_empty() || workflow.name.chars().count() > 100 {
            faults.push(Fault::new(&*path, "the name must have 1 to 100 characters"));
        }
        if workflow.tasks.is_empty() || workflow.tasks.len() > MOST_TASKS {
            faults.push(Fault::new(&*path, format!("give 1 to {MOST_TASKS} tasks")));
        }
        for (at, task) in workflow.tasks.iter().enumerate() {
            let path = format!("{path}.tasks[{at}]");
            let has_form = workflow.tasks[..at].iter().any(|task| task.form.is_some());
            let messages = task_faults(task).into_iter().chain(call_faults(task, has_form));
            faults.extend(messages.map(|message| Fault::new(&*path, message)));
        }
    }
    faults
}

fn task_faults(task: &WorkflowTask) -> Vec<String> {
    let asks = task.subagent == USER_INPUT[0];
    let has_prompt = task.llm_prompt.as_ref().is_some_and(|prompt| !prompt.trim().is_empty());
    let fields = task.form.as_ref().map(|form| form.fields.len());
    let text = serde_json::to_string(task).unwrap_or_default();
    let foreign: BTreeSet<&str> =
        template::names(&text).into_iter().filter(|name| !name.starts_with(VARIABLES)).collect();
    let mut messages = Vec::new();
    let mut rule = |holds: bool, message: String| {
        if !holds {
            messages.push(message);
        }
    };
    rule(!task.display_text.trim().is_empty(), "give displayText, the text in the plan".to_owned());
    rule(!task.subagent.is_empty(), "give subagent, the name of the agent".to_owned());
    rule(asks || fields.is_none(), "only a task of `user_input` has a form".to_owned());
    rule(fields.is_some() || has_prompt, "give llmPrompt, what the agent shall do".to_owned());
    rule(fields.is_none() || !has_prompt, "give llmPrompt or form, not both".to_owned());
    rule(
        fields.is_none_or(|fields| (1..=MOST_FIELDS).contains(&fields)),
        format!("give the form 1 to {MOST_FIELDS} fields"),
    );
    rule(
        foreign.is_empty(),
        format!(
            "only variables that begin with `{VARIABLES}` are read, so that no credential comes into a prompt; rename {}, \
             or write `$${{` for a literal `${{`",
            foreign.into_iter().collect::<Vec<_>>().join(", ")
        ),
    );
    messages
}

/// The faults of the calls of a task; `has_form` if a task before it has a form.
fn call_faults(task: &WorkflowTask, has_form: bool) -> Vec<String> {
    let mut messages = Vec::new();
    if !task.calls.is_empty() && !has_form {
        messages.push(
            "calls: a task of `user_input` with a form must come before, because it approves them".to_owned(),
        );
    }
    if task.calls.len() > MOST_CALLS {
        messages.push(format!("calls: give at most {MOST_CALLS}"));
    }
    for (at, call) in task.calls.iter().enumerate() {
        if call.tool.trim().is_empty() {
            messages.push(format!("calls[{at}].tool: give the name of the tool"));
        }
        if serde_json::from_str::<Map<String, Value>>(&call.arguments).is_err() {
            messages.push(format!(
                "calls[{at}].arguments: give a JSON object, such as {{\"name\": \"{{{{ name }}}}\"}}"
            ));
        }
    }
    messages
}

/// Leaves out the calls that a form cannot approve, with a warning, so that the form does not show them.
fn leave_out_calls(cx: &mut Context<'_>, path: &str, workflows: &mut [Workflow], agents: &[RenderedAgent]) {
    let have_approvers = !cx.resource.spec.approvers.is_empty();
    for workflow in workflows {
        for (at, task) in workflow.tasks.iter_mut().enumerate().filter(|(_, task)| !task.calls.is_empty()) {
            let agent = agents.iter().find(|agent| agent.name == task.subagent);
            let reason = match agent {
                Some(agent) if agent.is_foreign() => "asks for no approvals, because it is another program",
                Some(agent) if have_approvers || !agent.approvers.is_empty() => {
                    "has approvers, who decide each call"
                }
                _ => continue,
            };
            task.calls.clear();
            let message = format!("the form approves no calls: the agent `{}` {reason}", task.subagent);
            cx.warn(format!("{path}[{}].tasks[{at}].calls", workflow.name), message);
        }
    }
}

/// Warns of agents that do not exist or are disabled. A workflow that needs one is refused when it is started.
fn warn_of_agents(cx: &mut Context<'_>, path: &str, workflows: &[Workflow], agents: &[RenderedAgent]) {
    for workflow in workflows {
        for (at, task) in workflow.tasks.iter().enumerate() {
            let name = task.subagent.as_str();
            if name.is_empty() || name == USER_INPUT[0] || agents.iter().any(|agent| agent.name == name) {
                continue;
            }
            let is_known = cx.resource.spec.agents().iter().any(|agent| normal(&agent.name) == name)
                || catalogue::find(name).is_some();
            let reason = if is_known { "is not enabled" } else { "does not exist" };
            cx.warn(
                format!("{path}[{}].tasks[{at}].subagent", workflow.name),
                format!("the agent `{name}` {reason}: the workflow cannot run until it is enabled"),
            );
        }
    }
}

#[cfg(test)]
#[path = "workflows_tests.rs"]
mod tests;
