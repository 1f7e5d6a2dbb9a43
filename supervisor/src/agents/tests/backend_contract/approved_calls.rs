//! A workflow's form approves exactly the calls that it shows, wherever the agent runs.

use std::collections::BTreeMap;

use caipe_crds::resolve::read_task_config;
use caipe_fixtures::mcp;
use serde_json::{Value, json};

use super::worker::{PLACEMENTS, Placement, Worker};
use super::workflows::Asked;
use crate::agent::SelfService;

const WORKFLOW: &str = r#"
Remove a Repository:
  tasks:
    - display_text: Ask
      subagent: user_input
      form: { title: Remove, description: Which one?, fields: [{ field_name: name }, { field_name: ms, field_type: number, required: false }] }
    - display_text: Remove it
      subagent: helper
      llm_prompt: Remove it.
      calls:
        - { tool: TOOL, arguments: { text: "gone: ${WORKFLOW_ORG}/{{ name }}", ms: "{{ ms }}" } }
"#;

/// An agent that makes these calls, one after the other.
fn helper(calls: &[Value]) -> String {
    let turns: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(turn, arguments)| {
            json!({"when": {"turn": turn}, "reply": {"calls": [{"name": "note", "arguments": arguments}]}})
        })
        .chain([json!({"reply": {"text": "done"}})])
        .collect();
    json!({ "turns": turns }).to_string()
}

/// The state of the workflow after its form, the question, and the notes of the server.
struct Submitted {
    asked: Asked,
    directory: tempfile::TempDir,
    _worker: Worker,
}

impl Submitted {
    async fn start(place: Placement, tool: &str, calls: &[Value]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let state = Some(directory.path().join("calls"));
        let options = mcp::Options { mode: mcp::Mode::Noting, state, ..mcp::Options::default() };
        let worker = Worker::start_with(place, &helper(calls), true, options).await;
        let mut spec = caipe_crds::resolve(&caipe_crds::default_resource(), &BTreeMap::new()).unwrap().spec;
        spec.workflows = read_task_config(&WORKFLOW.replace("TOOL", tool)).unwrap();
        let env = BTreeMap::from([("WORKFLOW_ORG".to_owned(), "acme".to_owned())]);
        let self_service = SelfService::new(&spec, &env);
        assert_eq!(self_service.faults, Vec::<String>::new());
        let mut asked = Asked::start(&worker, self_service, "Remove a Repository").await;
        let form = asked.question()["response"].as_str().unwrap().to_owned();
        let arguments = "{\"text\":\"gone: acme/{{ name }}\",\"ms\":\"{{ ms }}\"}";
        let shown = format!("- helper: {tool} `{arguments}`");
        assert!(
            form.starts_with("Which one?\n\nBy submitting this form") && form.ends_with(&shown),
            "{form}"
        );
        asked.answer(&json!({"name": "demo"})).await;
        Self { asked, directory, _worker: worker }
    }

    fn notes(&self) -> Vec<String> {
        let notes = std::fs::read_to_string(self.directory.path().join("calls")).unwrap_or_default();
        notes.lines().map(str::to_owned).collect()
    }

    fn waits(&self) -> bool {
        self.asked.state() == "InputRequired"
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_approves_exactly_what_it_shows() {
    let exact = json!({"text": "gone: acme/demo"});
    for place in PLACEMENTS {
        for tool in ["note", "tools/note"] {
            let submitted = Submitted::start(place, tool, std::slice::from_ref(&exact)).await;
            // The form binds an agent only; another supervisor asks its own people.
            let obeys = place != Placement::RemoteSupervisor;
            let state = if obeys { "Completed" } else { "InputRequired" };
            assert_eq!(submitted.asked.state(), state, "{place:?} {tool}: {}", submitted.asked.text());
            let expected: &[&str] = if obeys { &["gone: acme/demo"] } else { &[] };
            assert_eq!(submitted.notes(), expected, "{place:?} {tool}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_differs_from_what_was_shown_asks() {
    let differing = [
        json!({"text": "gone: acme/demo2"}),
        json!({"text": "gone: acme/demo "}),
        json!({"text": "gone: acme/demo", "ms": 0}),
        json!({"text": "gone: acme/demo", "force": true}),
        json!({"text": ["gone: acme/demo"]}),
        json!({}),
    ];
    for place in [Placement::InProcess, Placement::Remote] {
        for arguments in &differing {
            let mut submitted = Submitted::start(place, "note", std::slice::from_ref(arguments)).await;
            assert!(submitted.waits(), "{place:?} {arguments}: {}", submitted.asked.text());
            assert_eq!(submitted.notes(), [""; 0], "{place:?} {arguments}");
            assert_eq!(&submitted.asked.question()["arguments"], arguments, "{place:?}");
            submitted.asked.answer(&Value::Null).await;
            assert_eq!(submitted.asked.state(), "Completed", "{place:?} {arguments}");
        }
        let other_tool = Submitted::start(place, "notes", &[json!({"text": "gone: acme/demo"})]).await;
        assert!(other_tool.waits(), "{place:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_approves_a_call_once() {
    let exact = json!({"text": "gone: acme/demo"});
    for place in [Placement::InProcess, Placement::Remote] {
        let mut submitted = Submitted::start(place, "note", &[exact.clone(), exact.clone()]).await;
        assert!(submitted.waits(), "{place:?}: {}", submitted.asked.text());
        assert_eq!(submitted.notes(), ["gone: acme/demo"], "{place:?}");
        submitted.asked.answer(&Value::Null).await;
        assert_eq!(submitted.asked.state(), "Completed", "{place:?}");
        assert_eq!(submitted.notes().len(), 2, "{place:?}");
    }
}
