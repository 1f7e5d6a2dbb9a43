//! Self-service workflows: the same events and the same calls of tools in every placement.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use caipe_a2a::model::{Message, Part, Role as A2aRole};
use caipe_a2a::server::TaskLog;
use caipe_crds::{read_resource, resolve};
use caipe_fixtures::mcp;
use caipe_store::MemoryStore;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::wire::{Names, read_after};
use super::worker::{PLACEMENTS, Worker, agent};
use crate::agent::{Agent, Delegate, Delegates, Role, SelfService, Sharing};
use crate::agents::InProcessBackend;
use crate::binding::Presentation;
use crate::run::{LOG_MEMORY, Runs};

/// The shipped workflows, with the one agent of the test in place of each agent.
fn shipped() -> SelfService {
    let mut text = include_str!("../../../../../examples/workflows.yaml").to_owned();
    for name in ["github", "argocd", "jira", "slack"] {
        text = text.replace(&format!("subagent: {name}"), "subagent: helper");
    }
    let env = BTreeMap::from([("WORKFLOW_GITHUB_ORG".to_owned(), "acme".to_owned())]);
    let spec = resolve(&read_resource(&text).unwrap(), &BTreeMap::new()).unwrap().spec;
    let read = SelfService::new(&spec, &env);
    assert_eq!((read.workflows.len(), &read.faults), (3, &Vec::new()));
    read
}

const SUPERVISOR: &str = r#"
turns:
  - { when: { turn: 0 }, reply: { calls: [{ name: invoke_self_service_task, arguments: { task_name: "{{ user }}" } }] } }
  - { reply: { calls: [{ name: PlatformEngineerResponse, arguments: { content: "{{ last_result }}" } }] } }
"#;

/// An agent that notes its prompt with a tool of the server, once for each step.
const HELPER: &str = r#"
turns:
  - { when: { turn: 0 }, reply: { calls: [{ name: note, arguments: { text: "CALL {{ user }}" } }] } }
  - { reply: { text: "https://github.test/acme/demo" } }
"#;

/// An agent for input whose model makes the form, and writes the values into a file.
const USER_INPUT: &str = r#"
turns:
  - { when: { turn: 0 }, reply: { calls: [{ name: request_user_input, arguments: { description: "{{ user }}", fields: [{ field_name: name }] } }] } }
  - { when: { turn: 1 }, reply: { calls: [{ name: write_file, arguments: { file_path: /request.txt, content: "{{ last_result }}" } }] } }
  - { reply: { text: noted } }
"#;

/// A task of a supervisor whose helper is this one.
pub(super) struct Asked {
    runs: Arc<Runs>,
    log: Arc<TaskLog>,
    names: Names,
    events: Vec<Value>,
}

impl Asked {
    pub(super) async fn start(worker: &Worker, mut self_service: SelfService, name: &str) -> Self {
        let delegate = Delegate {
            backend: worker.backend.clone(),
            active: TaskTracker::new(),
            title: "Helper".to_owned(),
            routing_hint: "helps".to_owned(),
            sharing: Sharing::default(),
        };
        let asking = agent("user_input", USER_INPUT, Role::worker(), Vec::new(), Vec::new());
        self_service.user_input = Some(Arc::new(InProcessBackend(Arc::new(asking))));
        let spec = resolve(&caipe_crds::default_resource(), &BTreeMap::new()).unwrap().spec;
        let delegates: Delegates = [(caipe_engine::AgentName::new("helper"), delegate)].into_iter().collect();
        let role = Role::Supervisor { spec: Arc::new(spec), delegates: Arc::new(delegates), self_service };
        Self::of(agent("supervisor", SUPERVISOR, role, Vec::new(), Vec::new()), name).await
    }

    /// A task of this supervisor, up to its end or its question.
    pub(super) async fn of(front: Agent, text: &str) -> Self {
        let presentation = Presentation::Supervisor { tool_output: None };
        let store = Arc::<MemoryStore>::default();
        let runs = Runs::new(Arc::new(front), presentation, store, Duration::from_mins(10), LOG_MEMORY);
        let (log, after) = runs.send(Message::user("m", text)).await.unwrap();
        let mut asked = Self { runs, log, names: Names::default(), events: Vec::new() };
        asked.read(after).await;
        asked
    }

    async fn read(&mut self, after: u64) {
        for event in read_after(&self.log.clone(), after).await {
            self.events.push(self.names.mask(event));
        }
    }

    pub(super) fn state(&self) -> String {
        format!("{:?}", self.log.snapshot().status.state)
    }

    /// The form or approval that waits.
    pub(super) fn question(&self) -> Value {
        let artifacts = self.log.snapshot().artifacts;
        let form =
            artifacts.iter().rev().find(|artifact| artifact.name.as_deref() == Some("UserInputMetaData"));
        form.unwrap().parts[0].as_data().cloned().unwrap()
    }

    /// Answers what waits: a form with these values, or an approval.
    pub(super) async fn answer(&mut self, values: &Value) {
        let question = self.question();
        let action = question["action_name"].as_str().unwrap();
        let mut decision = json!({"type": "approve", "action_name": action,
            "interaction_id": question["interaction_id"], "digest": question["digest"]});
        if action == "CAIPEAgentResponse" {
            decision["type"] = json!("edit");
            decision["args"] = json!({"args": {"user_inputs": values}});
        }
        let task = self.log.snapshot();
        let part = Part::data(json!({"resume": {"decisions": [decision]}}));
        let mut message = Message::new(A2aRole::User, uuid::Uuid::new_v4(), vec![part]);
        (message.task_id, message.context_id) = (Some(task.id), Some(task.context_id));
        let (log, after) = self.runs.send(message).await.unwrap();
        self.log = log;
        self.read(after).await;
    }

    pub(super) fn text(&self) -> String {
        self.events.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
    }
}

/// Runs `act` in every placement with a server that notes its calls in a file. The events and the notes must be the same.
async fn same(approval: bool, act: impl AsyncFn(&Worker) -> Asked, check: impl Fn(&Asked, &str)) {
    let mut first: Option<(String, String)> = None;
    for place in PLACEMENTS {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("calls");
        let options =
            mcp::Options { mode: mcp::Mode::Noting, state: Some(state.clone()), ..mcp::Options::default() };
        let worker = Worker::start_with(place, HELPER, approval, options).await;
        let asked = act(&worker).await;
        let notes = std::fs::read_to_string(&state).unwrap_or_default();
        match &first {
            None => check(&asked, &notes),
            Some((events, calls)) => {
                assert_eq!(&asked.text(), events, "{place:?}");
                assert_eq!(&notes, calls, "{place:?}");
            }
        }
        first.get_or_insert_with(|| (asked.text(), notes));
    }
}

fn lines(text: &str, mark: &str) -> usize {
    text.matches(mark).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shipped_workflow_creates_a_repository() {
    let act = async |worker: &Worker| {
        let mut asked = Asked::start(worker, shipped(), "Create GitHub Repo").await;
        assert_eq!(asked.question()["input_title"], "A new repository");
        let form = asked.question();
        let shown = form["response"].as_str().unwrap();
        assert!(
            shown.contains(r#"- helper: create_repository `{"name":"{{ name }}","organization":"acme""#),
            "{shown}"
        );
        asked.answer(&json!({"name": "demo", "private": "no"})).await;
        asked
    };
    same(false, act, |asked, calls| {
        assert_eq!(asked.state(), "Completed", "{}", asked.text());
        assert_eq!(lines(calls, "CALL "), 2, "{calls}");
        let (create, add) = calls.split_once("CALL Add a CODEOWNERS").unwrap();
        assert!(create.contains("in the organization acme") && create.contains("name=demo"), "{create}");
        let approved =
            r#"- create_repository `{"name":"demo","organization":"acme","private":false,"autoInit":true}`"#;
        assert!(create.contains(approved) && !add.contains(approved), "{calls}");
        assert!(add.contains("=== /workflow/step-2.txt ===\nhttps://github.test/acme/demo"), "{add}");
        let text = asked.text();
        assert!(
            text.contains("🔧 Workflow: Calling [User_Input] Collect the details of the repository..."),
            "{text}"
        );
        assert!(text.contains("✅ Workflow: [Helper] Create the repository completed"), "{text}");
        assert!(text.contains("🔧 Supervisor: Calling Agent Helper..."), "{text}");
        assert!(!text.contains("Invoke_Self_Service_Task"), "{text}");
        assert!(text.contains("is complete: all 3 steps are done"), "{text}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_a_step_waits_for_its_approval() {
    let act = async |worker: &Worker| {
        let mut asked = Asked::start(worker, shipped(), "Report an Incident").await;
        let values = json!({"summary": "down", "severity": "SEV1", "service": "shop", "impact": "no orders"});
        asked.answer(&values).await;
        for _ in 0..2 {
            assert_eq!(
                (asked.state().as_str(), &asked.question()["action_name"]),
                ("InputRequired", &json!("note"))
            );
            asked.answer(&Value::Null).await;
        }
        asked
    };
    same(true, act, |asked, calls| {
        assert_eq!(asked.state(), "Completed", "{}", asked.text());
        assert_eq!(
            (lines(calls, "CALL Open an issue"), lines(calls, "CALL Post one message")),
            (1, 1),
            "{calls}"
        );
        assert!(calls.contains("severity=SEV1"), "{calls}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_makes_the_form_of_a_step_without_one() {
    let act = async |worker: &Worker| {
        let mut self_service = shipped();
        let mut workflows = (*self_service.workflows).clone();
        let first = &mut workflows[1].steps[0];
        (first.form, first.prompt) = (None, "Ask for the application.".to_owned());
        self_service.workflows = Arc::new(workflows);
        let mut asked = Asked::start(worker, self_service, "deploy an application").await;
        assert_eq!(asked.question()["response"], "The agent user_input asks: Ask for the application.");
        asked.answer(&json!({"name": "shop"})).await;
        asked
    };
    same(false, act, |asked, calls| {
        assert_eq!(asked.state(), "Completed", "{}", asked.text());
        assert!(calls.contains("=== /request.txt ===\nUSER_FORM_SUBMITTED\n  name=shop"), "{calls}");
        assert_eq!(lines(calls, "CALL "), 2, "{calls}");
    })
    .await;
}
