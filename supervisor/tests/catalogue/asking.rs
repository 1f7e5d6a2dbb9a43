//! A call that writes, in a run of a supervisor that delegates to the agent: nothing is sent before a person approves it.

use std::sync::Arc;

use caipe_a2a::model::{Part, TaskState};
use caipe_crds::catalogue::Entry;
use caipe_store::MemoryStore;
use caipe_supervisor::agent::Agent;
use caipe_supervisor::agents::InProcessBackend;
use caipe_supervisor::binding::Presentation;
use caipe_supervisor::builtin::ToolClass;
use caipe_supervisor::delegation::AgentBackend;
use caipe_supervisor::run::Runs;
use serde_json::{Value, json};

use crate::Surroundings;
use crate::support::{
    TestSetup, decisions, forms, last_state, message, read, read_after, runs_of, texts, to_task,
};

/// For each agent that can write: a tool that destroys, or else one that writes, and its arguments.
const WRITES: [(&str, &str, &str); 13] = [
    ("github", "merge_pull_request", r#"{"owner": "o", "repo": "r", "pullNumber": 1}"#),
    ("gitlab", "create_issue", r#"{"project_id": "1", "title": "t"}"#),
    ("aigateway", "rotate-llm-api-key", r#"{"key": "k"}"#),
    ("jira", "jira_delete_issue", r#"{"issue_key": "ABC-1"}"#),
    ("confluence", "confluence_delete_page", r#"{"page_id": "1"}"#),
    ("webex", "create_webex_room", r#"{"title": "t"}"#),
    ("argocd", "delete_application", r#"{"applicationName": "a"}"#),
    (
        "pagerduty",
        "manage_incidents",
        r#"{"manage_request": {"incident_ids": ["P1"], "status": "resolved"}}"#,
    ),
    ("slack", "conversations_add_message", r#"{"channel_id": "C1", "text": "hello"}"#),
    ("kubernetes", "pods_delete", r#"{"name": "p", "namespace": "n"}"#),
    ("grafana", "alerting_silences_write", r#"{"operation": "delete", "silence_id": "s"}"#),
    ("backstage", "catalog_unregister-entity", r#"{"locationId": "l"}"#),
    ("splunk", "my_app_close_alert", "{}"),
];

/// The supervisor hands a task to the agent that the user names, and repeats its answer.
const SUPERVISOR: &str = r#"
turns:
  - { when: { turn: 0 }, reply: { calls: [{ name: task, arguments: { subagent_type: "{{ user }}", description: go } }] } }
  - { reply: { text: "{{ last_result }}" } }
"#;

fn write_of(agent: &str) -> Option<(&'static str, Value)> {
    let (_, tool, arguments) = WRITES.iter().find(|write| write.0 == agent)?;
    Some((tool, serde_json::from_str(arguments).unwrap()))
}

/// The agent calls its tool that writes, once.
pub(crate) fn script(agent: &str) -> Value {
    let answer = json!({"reply": {"text": "done"}});
    let Some((tool, arguments)) = write_of(agent) else { return json!({"turns": [answer]}) };
    let call = json!({"when": {"turn": 0}, "reply": {"calls": [{"name": tool, "arguments": arguments}]}});
    json!({"turns": [call, answer]})
}

/// Runs the call twice: rejected, and approved, which shows that the first one was not sent.
pub(crate) async fn check(entry: &Entry, agent: &Arc<Agent>, surroundings: &Surroundings) {
    let view = agent.tools.servers.view();
    let writes: Vec<_> = view.tools.iter().filter(|tool| tool.class != ToolClass::Read).collect();
    let Some((tool, arguments)) = write_of(&entry.name) else {
        let writes: Vec<_> = writes.iter().map(|tool| &tool.spec.name).collect();
        return assert!(writes.is_empty(), "{}: name one of {writes:?} in WRITES", entry.name);
    };
    assert!(writes.iter().any(|it| it.spec.name == tool), "{}: {tool} writes", entry.name);
    let before = surroundings.requests(entry);
    decide(entry, agent, (tool, &arguments), "reject", || {
        assert_eq!(surroundings.requests(entry), before, "{}: {tool} is sent without approval", entry.name);
    })
    .await;
    assert_eq!(surroundings.requests(entry), before, "{}: {tool} is sent after its rejection", entry.name);
    decide(entry, agent, (tool, &arguments), "approve", || ()).await;
    assert!(surroundings.requests(entry) > before, "{}: {tool} is not sent after its approval", entry.name);
}

/// A run whose question names the call, and the decision.
async fn decide(entry: &Entry, agent: &Arc<Agent>, call: (&str, &Value), decision: &str, waiting: impl Fn()) {
    let runs = runs(entry, agent);
    let (log, _) = runs.send(message(&entry.name, None)).await.unwrap();
    let events = read(&log).await;
    assert_eq!(last_state(&events), TaskState::InputRequired, "{}: {events:?}", entry.name);
    waiting();
    let form = &forms(&events)[0];
    assert_eq!((form["action_name"].as_str(), &form["arguments"]), (Some(call.0), call.1), "{form}");
    let task = log.snapshot();
    let parts: Vec<Part> = vec![decisions(&json!([{"type": decision}]))];
    let (log, seen) = runs.send(to_task(Some(&task.id), &task.context_id, parts)).await.unwrap();
    let events = read_after(&log, seen).await;
    assert_eq!(last_state(&events), TaskState::Completed, "{}: {events:?}", entry.name);
    assert_eq!(texts(&events, "final_result"), ["done"], "{}", entry.name);
}

fn runs(entry: &Entry, agent: &Arc<Agent>) -> Arc<Runs> {
    let backend: Arc<dyn AgentBackend> = Arc::new(InProcessBackend(agent.clone()));
    let setup = TestSetup { script: SUPERVISOR, ..TestSetup::default() };
    let supervisor = setup.supervisor_of([(entry.name.as_str(), backend)]);
    runs_of(supervisor, Presentation::Supervisor { tool_output: None }, Arc::new(MemoryStore::default()))
}
