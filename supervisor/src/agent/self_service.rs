//! The self-service workflows of a supervisor, as its engine runs them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use caipe_crds::RenderedSpec;
use caipe_crds::resolve::WORKFLOW_VARIABLES;
use caipe_crds::resource::workflow::{
    Workflow as Declared, WorkflowCall, WorkflowField, WorkflowForm, WorkflowTask,
};
use caipe_engine::{AgentName, DeclaredCall, Form, Workflow, WorkflowStep};
use serde_json::{Value, json};

use crate::delegation::AgentBackend;
use crate::mcp::fill;

/// The workflows of a supervisor, and what runs the steps that ask the user.
#[derive(Clone, Default)]
pub struct SelfService {
    pub workflows: Arc<Vec<Workflow>>,
    /// The backend of the built-in agent `user_input`.
    pub user_input: Option<Arc<dyn AgentBackend>>,
    /// The reason for each workflow that is left out.
    pub faults: Vec<String>,
}

impl fmt::Debug for SelfService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelfService").field("workflows", &self.workflows).finish_non_exhaustive()
    }
}

impl SelfService {
    /// The workflows of a spec. Of the environment, only the variables for workflows are read.
    pub fn new(spec: &RenderedSpec, env: &BTreeMap<String, String>) -> Self {
        let is_allowed = |(name, _): &(&String, &String)| name.starts_with(WORKFLOW_VARIABLES);
        let env = env.iter().filter(is_allowed).map(|(name, value)| (name.clone(), value.clone())).collect();
        let (mut workflows, mut faults) = (Vec::new(), Vec::new());
        for declared in &spec.workflows {
            match workflow(declared, &env) {
                Ok(workflow) => workflows.push(workflow),
                Err(reason) => faults.push(format!("{}: {reason}", declared.name)),
            }
        }
        Self { workflows: Arc::new(workflows), user_input: None, faults }
    }

    /// The workflows for clients, without the prompts of their tasks.
    pub(crate) fn listing(&self) -> Value {
        let task = |step: &WorkflowStep| {
            let mut task = json!({ "display_text": step.title, "subagent": step.agent });
            if !step.calls.is_empty() {
                task["calls"] = json!(step.calls);
            }
            if let Some(form) = &step.form {
                task["form"] =
                    json!({ "title": form.title, "description": form.description, "fields": form.fields });
            }
            task
        };
        let workflow = |workflow: &Workflow| {
            let tasks: Vec<Value> = workflow.steps.iter().map(task).collect();
            json!({ "name": workflow.name, "tasks": tasks })
        };
        let workflows: Vec<Value> = self.workflows.iter().map(workflow).collect();
        json!({ "workflows": workflows, "faults": self.faults })
    }
}

fn workflow(declared: &Declared, env: &BTreeMap<String, String>) -> Result<Workflow, String> {
    let steps = declared
        .tasks
        .iter()
        .enumerate()
        .map(|(at, task)| step(task, env).map_err(|reason| format!("tasks[{at}]: {reason}")));
    let steps = steps.collect::<Result<Vec<_>, _>>()?;
    check_fields(&steps)?;
    Ok(Workflow { name: declared.name.trim().to_owned(), steps })
}

/// Whether the first form has the fields that the arguments of calls name.
fn check_fields(steps: &[WorkflowStep]) -> Result<(), String> {
    let form = steps.iter().find_map(|step| step.form.as_ref());
    let names: Vec<&str> =
        form.iter().flat_map(|form| &form.fields).map(|field| field.field_name.as_str()).collect();
    for (at, call) in
        steps.iter().enumerate().flat_map(|(at, step)| step.calls.iter().map(move |call| (at, call)))
    {
        if let Some(unknown) = call.fields().into_iter().find(|field| !names.contains(&field.as_str())) {
            let tool = &call.tool;
            let names = names.join(", ");
            return Err(format!(
                "tasks[{at}].calls: {tool}: the form has no field `{unknown}`; it has {names}"
            ));
        }
    }
    Ok(())
}

fn step(task: &WorkflowTask, env: &BTreeMap<String, String>) -> Result<WorkflowStep, String> {
    let filled = |text: &str| fill(text, env).map_err(|error| error.to_string());
    let title = filled(&task.display_text)?.split_whitespace().collect::<Vec<_>>().join(" ");
    let prompt = task.llm_prompt.as_deref().map_or_else(|| Ok(String::new()), filled)?;
    let form = task.form.as_ref().map(|form| form_of(form, env)).transpose()?;
    let calls = task.calls.iter().map(|call| call_of(call, env)).collect::<Result<_, _>>()?;
    Ok(WorkflowStep { title, agent: AgentName::new(&task.subagent), prompt, form, calls })
}

fn call_of(call: &WorkflowCall, env: &BTreeMap<String, String>) -> Result<DeclaredCall, String> {
    let arguments = serde_json::from_str(&call.arguments).map_err(|error| format!("calls: {error}"))?;
    match filled_in(Value::Object(arguments), env)? {
        Value::Object(arguments) => Ok(DeclaredCall { tool: call.tool.trim().to_owned(), arguments }),
        _ => Err("calls: the arguments are no object".to_owned()),
    }
}

fn form_of(form: &WorkflowForm, env: &BTreeMap<String, String>) -> Result<Form, String> {
    let fields: Vec<Value> = form.fields.iter().map(field).collect();
    let description = form.description.as_ref().unwrap_or(&form.title);
    let arguments = json!({ "title": form.title, "description": description, "fields": fields });
    match filled_in(arguments, env)? {
        Value::Object(arguments) => Form::declared(&arguments).map_err(|error| format!("form: {error}")),
        _ => Err("form: not an object".to_owned()),
    }
}

/// The field in the format of the tool `request_user_input`.
fn field(field: &WorkflowField) -> Value {
    let texts = [
        ("field_label", &field.field_label),
        ("field_description", &field.field_description),
        ("field_type", &field.field_type),
        ("placeholder", &field.placeholder),
        ("default_value", &field.default_value),
    ];
    let mut value = json!({ "field_name": field.field_name, "required": field.required.unwrap_or(true) });
    for (key, text) in texts {
        if let Some(text) = text {
            value[key] = json!(text);
        }
    }
    for (key, bound) in [("min", field.min), ("max", field.max)] {
        if let Some(bound) = bound {
            value[key] = json!(bound);
        }
    }
    if !field.field_values.is_empty() {
        value["field_values"] = json!(field.field_values);
    }
    value
}

/// The value with the variables in all of its texts.
fn filled_in(value: Value, env: &BTreeMap<String, String>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(fill(&text, env).map_err(|error| error.to_string())?),
        Value::Array(list) => {
            Value::Array(list.into_iter().map(|value| filled_in(value, env)).collect::<Result<_, _>>()?)
        }
        Value::Object(object) => {
            let filled = object.into_iter().map(|(key, value)| Ok((key, filled_in(value, env)?)));
            Value::Object(filled.collect::<Result<_, String>>()?)
        }
        value => value,
    })
}

#[cfg(test)]
mod tests {
    use caipe_crds::resolve::read_task_config;

    use super::*;

    fn self_service(text: &str) -> SelfService {
        let mut spec = caipe_crds::resolve(&caipe_crds::default_resource(), &BTreeMap::new()).unwrap().spec;
        spec.workflows = read_task_config(text).unwrap();
        let env = [("WORKFLOW_ORG", "acme"), ("GITHUB_TOKEN", "secret")];
        SelfService::new(&spec, &env.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }

    #[test]
    fn variables_of_workflows_are_filled_in_and_no_others() {
        let read = self_service(
            "Repo:\n  tasks: [{ display_text: 'in ${WORKFLOW_ORG}', llm_prompt: 'Create it in ${WORKFLOW_ORG}', subagent: github }]\n\
             Leak:\n  tasks: [{ display_text: Leak, llm_prompt: '${GITHUB_TOKEN}', subagent: github }]\n",
        );
        let [repo] = read.workflows.as_slice() else { panic!("{read:?}") };
        assert_eq!(
            (repo.steps[0].title.as_str(), repo.steps[0].prompt.as_str()),
            ("in acme", "Create it in acme")
        );
        assert!(!read.listing().to_string().contains("Create it"), "prompts are not listed");
        assert!(
            read.faults[0].starts_with("Leak: tasks[0]: the environment variable GITHUB_TOKEN is not set")
        );
    }

    #[test]
    fn a_call_names_fields_of_the_first_form_only() {
        let task = |arguments: &str| {
            format!(
                "Repo:\n  tasks:\n  - {{ display_text: Ask, subagent: user_input, form: {{ title: T, fields: [{{ field_name: name }}] }} }}\n  \
                 - {{ display_text: Go, subagent: github, llm_prompt: Go, calls: [{{ tool: ' create ', arguments: {arguments} }}] }}\n"
            )
        };
        let read = self_service(&task("{ name: '{{ name }}', org: '${WORKFLOW_ORG}' }"));
        let [call] = read.workflows[0].steps[1].calls.as_slice() else { panic!("{read:?}") };
        assert_eq!((call.tool.as_str(), &call.arguments["org"]), ("create", &json!("acme")));
        assert_eq!(read.listing()["workflows"][0]["tasks"][1]["calls"][0]["tool"], "create");
        let read = self_service(&task("{ name: 'x {{ nam }}' }"));
        assert_eq!(read.faults, ["Repo: tasks[1].calls: create: the form has no field `nam`; it has name"]);
        let read = self_service(&task("{ name: '${GITHUB_TOKEN}' }"));
        assert!(read.faults[0].contains("GITHUB_TOKEN is not set"), "{:?}", read.faults);
    }

    #[test]
    fn a_declared_form_is_checked_as_one_of_a_model() {
        let read = self_service(
            "Good:\n  tasks: [{ display_text: Ask, subagent: user_input, form: { title: T, fields: [\
             { field_name: org, field_values: ['${WORKFLOW_ORG}'], default_value: acme }] } }]\n\
             Bad:\n  tasks: [{ display_text: Ask, subagent: user_input, form: { title: T, fields: [\
             { field_name: org, field_type: colour }] } }]\n",
        );
        let form = read.workflows[0].steps[0].form.clone().unwrap();
        assert_eq!(form.fields[0].field_values.as_deref(), Some(&["acme".to_owned()][..]));
        assert!(form.fields[0].required);
        let listing = read.listing();
        assert_eq!(listing["workflows"][0]["tasks"][0]["form"]["fields"][0]["field_name"], "org");
        assert_eq!(listing["faults"].as_array().map(Vec::len), Some(1));
        assert!(
            read.faults[0].contains("tasks[0]: form: ") && read.faults[0].contains("colour"),
            "{:?}",
            read.faults
        );
    }
}
