use std::collections::BTreeMap;

use super::*;
use crate::resource::CaipeSupervisor;
use crate::resource::agent::{Agent, External};
use crate::resource::approver::Approver;
use crate::resource::common::ConfigMapKeyRef;
use crate::resource::workflow::Workflows;
use crate::{Target, default_resource, resolve, resolve_for};

const REPO: &str = "
Create GitHub Repo:
  tasks:
    - { display_text: Which one, subagent: CAIPE, form: { title: A repository, fields: [{ field_name: repo, field_values: [a, b] }] } }
    - { display_text: Create it, llm_prompt: 'in ${WORKFLOW_ORG:-acme}', subagent: ' GitHub ' }
";

fn resource(text: &str) -> CaipeSupervisor {
    let mut resource = default_resource();
    let inline = Some(read_task_config(text).unwrap());
    resource.spec.workflows = Some(Workflows { inline, config_map_ref: None });
    resource
}

fn fault(text: &str) -> String {
    match read_task_config(text) {
        Ok(_) => resolve(&resource(text), &BTreeMap::new()).unwrap_err().to_string(),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn upstreams_format_is_read() {
    let resolved = resolve(&resource(REPO), &BTreeMap::new()).unwrap();
    let [workflow] = resolved.spec.workflows.as_slice() else { panic!() };
    assert_eq!(workflow.name, "Create GitHub Repo");
    let agents: Vec<&str> = workflow.tasks.iter().map(|task| task.subagent.as_str()).collect();
    assert_eq!(agents, ["user_input", "github"]);
    assert_eq!(workflow.tasks[0].form.as_ref().unwrap().fields[0].field_values, ["a", "b"]);
}

#[test]
fn a_default_may_be_a_number_or_a_truth_value() {
    let text = "A: { tasks: [{ display_text: x, subagent: user_input, form: { title: t, fields: [\
        { field_name: stars, field_type: number, default_value: 3, min: 1, max: 5 }, { field_name: open, defaultValue: true }] } }] }";
    let workflows = read_task_config(text).unwrap();
    let fields = &workflows[0].tasks[0].form.as_ref().unwrap().fields;
    let defaults: Vec<_> = fields.iter().map(|field| field.default_value.as_deref()).collect();
    assert_eq!(defaults, [Some("3"), Some("true")]);
    assert_eq!((fields[0].min, fields[0].max), (Some(1), Some(5)));
}

#[test]
fn faults_name_their_place() {
    for (text, expected) in [
        ("[]", "must be an object"),
        ("A: {}", "A: must have `tasks`"),
        ("A: { tasks: [{ display_text: x }] }", "A.tasks[0]: missing field `subagent`"),
        ("A: { tasks: [], steps: [] }", "A: the key `steps` is not known; the keys are tasks"),
        (
            "A: { tasks: [{ display_text: x, subagent: jira, when: never }] }",
            "A.tasks[0]: the key `when` is not known",
        ),
        (
            "A: { tasks: [{ display_text: x, subagent: user_input, form: { title: t, fields: [{ field_name: f, kind: y }] } }] }",
            "A.tasks[0]: the key `kind` is not known; the keys are field_name",
        ),
        ("A: { tasks: [] }", "spec.workflows.inline[A]: give 1 to 20 tasks"),
        ("A: { tasks: [{ display_text: x, subagent: jira }] }", "inline[A].tasks[0]: give llmPrompt"),
        (
            "A: { tasks: [{ display_text: x, subagent: jira, form: { title: t, fields: [{ field_name: f }] } }] }",
            "only a task of `user_input` has a form",
        ),
        (
            "A: { tasks: [{ display_text: x, subagent: user_input, form: { title: t, fields: [] } }] }",
            "1 to 50 fields",
        ),
        (
            "A: { tasks: [{ display_text: x, subagent: jira, llm_prompt: go, calls: [{ tool: t, arguments: {} }] }] }",
            "tasks[0]: calls: a task of `user_input` with a form must come before",
        ),
        (
            "A: { tasks: [{ display_text: x, subagent: jira, llm_prompt: go, calls: [{ tool: t, args: {} }] }] }",
            "A.tasks[0]: the key `args` is not known; the keys are tool, arguments",
        ),
        (
            "A: { tasks: [{ display_text: x, subagent: user_input, form: { title: t, fields: [{ field_name: f }] } }, \
             { display_text: x, subagent: jira, llm_prompt: go, calls: [{ tool: t, arguments: '[1]' }] }] }",
            "tasks[1]: calls[0].arguments: give a JSON object, such as {\"name\": \"{{ name }}\"}",
        ),
        (
            "A: { tasks: [{ display_text: x, subagent: jira, llm_prompt: '${JIRA_TOKEN:-x}' }] }",
            "only variables that begin with `WORKFLOW_` are read, so that no credential comes into a prompt; rename JIRA_TOKEN",
        ),
    ] {
        assert!(fault(text).contains(expected), "{text}: {}", fault(text));
    }
    let many: Vec<String> = (0..51)
        .map(|at| format!("w{at}: {{ tasks: [{{ display_text: x, subagent: jira, llm_prompt: go }}] }}"))
        .collect();
    let many = many.join("\n");
    assert!(fault(&many).contains("at most 50 workflows"));
    assert!(
        fault(&format!(
            "A: {{ tasks: [{{ display_text: {}, subagent: jira, llm_prompt: go }}] }}",
            "x".repeat(200_001)
        ))
        .contains("200000 bytes")
    );
}

#[test]
fn an_agent_that_is_missing_is_a_warning() {
    let text = "A: { tasks: [{ display_text: x, subagent: nobody, llm_prompt: go }, { display_text: x, subagent: jira, llm_prompt: go }] }";
    let mut resource = resource(text);
    resource.spec.agents = Some(Vec::new());
    let warnings = resolve(&resource, &BTreeMap::new()).unwrap().warnings;
    let warnings: Vec<String> =
        warnings.iter().map(ToString::to_string).filter(|it| it.contains("workflows")).collect();
    assert_eq!(
        warnings,
        [
            "spec.workflows.inline[A].tasks[0].subagent: the agent `nobody` does not exist: the workflow cannot run until it is \
             enabled",
            "spec.workflows.inline[A].tasks[1].subagent: the agent `jira` is not enabled: the workflow cannot run until it is \
             enabled"
        ]
    );
}

#[test]
fn a_config_map_has_the_text_of_the_file() {
    let mut resource = default_resource();
    let reference = ConfigMapKeyRef { name: "flows".to_owned(), key: "task_config.yaml".to_owned() };
    resource.spec.workflows = Some(Workflows { inline: None, config_map_ref: Some(reference) });
    let resolved = |data: &[(&str, &str)]| {
        let data = data.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
        let config_maps = BTreeMap::from([("flows".to_owned(), data)]);
        resolve_for(&resource, &BTreeMap::new(), &Target::Cluster { namespace: "ns".to_owned(), config_maps })
    };
    let spec = resolved(&[("task_config.yaml", REPO)]).unwrap().spec;
    assert_eq!(spec.workflows.len(), 1);
    let path = "spec.workflows.configMapRef: ";
    let fault = resolved(&[]).unwrap_err().to_string();
    assert!(fault.starts_with(path) && fault.contains("there is no key `task_config.yaml`"), "{fault}");
    let fault = resolved(&[("task_config.yaml", "A: {}")]).unwrap_err().to_string();
    assert!(fault.starts_with(path) && fault.contains("A: must have `tasks`"), "{fault}");
    let agent = spec.agents[0].name.clone();
    assert!(spec.for_agent(&agent).unwrap().0.workflows.is_empty(), "an agent's own spec has none");
}

/// The keys of the arguments are those of the tool, so they stay as they are.
#[test]
fn calls_are_left_out_where_a_form_cannot_approve_them() {
    let text = "A: { tasks: [{ display_text: x, subagent: user_input, form: { title: t, fields: [{ field_name: f }] } }, \
                { display_text: x, subagent: jira, llm_prompt: go, calls: [{ tool: t, arguments: { issue_id: '{{ f }}' } }] }] }";
    let resolved = |approvers: Vec<Approver>, external: bool| {
        let mut resource = resource(text);
        let mut agent = Agent { approvers, ..Agent::named("jira") };
        if external {
            agent.external = Some(External { url: "https://jira.test".to_owned(), ..External::default() });
        }
        resource.spec.agents = Some(vec![agent]);
        let auth = r#"{ "oauth2": { "issuer": "a", "audience": "b", "jwksUri": "http://c" } }"#;
        resource.spec.auth = serde_json::from_str(auth).unwrap();
        resolve(&resource, &BTreeMap::new()).unwrap()
    };
    let all = resolved(Vec::new(), false).spec.workflows[0].tasks[1].calls.clone();
    assert_eq!(all[0].arguments, r#"{"issue_id":"{{ f }}"}"#);
    let group = Approver { group: Some("leads".to_owned()), ..Approver::default() };
    for (approvers, external, reason) in [
        (vec![group], false, "has approvers, who decide each call"),
        (Vec::new(), true, "it is another program"),
    ] {
        let left = resolved(approvers, external);
        assert!(left.spec.workflows[0].tasks[1].calls.is_empty(), "{reason}");
        let warnings: Vec<String> = left.warnings.iter().map(ToString::to_string).collect();
        assert!(
            warnings.iter().any(|it| it.starts_with("spec.workflows.inline[A].tasks[1].calls: ") && it.ends_with(reason)),
            "{warnings:?}"
        );
    }
}
