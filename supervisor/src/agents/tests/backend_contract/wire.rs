//! The wire events of a supervisor whose agent is in process or remote.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use caipe_a2a::model::Message;
use caipe_a2a::server::TaskLog;
use caipe_crds::default_resource;
use caipe_store::MemoryStore;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::worker::{PATIENCE, PLACEMENTS, Placement, Worker, agent, supervisor};
use crate::agent::{Delegate, Sharing};
use crate::binding::Presentation;
use crate::run::{LOG_MEMORY, Runs};

/// A supervisor that hands everything to the helper, once or twice at once.
const SUPERVISOR: &str = r#"
turns:
  - when: { user: twice, turn: 0 }
    reply:
      calls:
        - { name: task, arguments: { subagent_type: helper, description: "{{ user }} a" } }
        - { name: task, arguments: { subagent_type: helper, description: "{{ user }} b" } }
  - { when: { turn: 0 }, reply: { text: "I ask. ", calls: [{ name: task, arguments: { subagent_type: helper, description: "{{ user }}" } }] } }
  - { reply: { calls: [{ name: PlatformEngineerResponse, arguments: { content: "helper: {{ last_result }}" } }] } }
"#;

/// The runs of a supervisor whose helper is this one.
fn runs(worker: &Worker, store: Arc<MemoryStore>) -> Arc<Runs> {
    let delegate = Delegate {
        backend: worker.backend.clone(),
        active: TaskTracker::new(),
        title: "Helper".to_owned(),
        routing_hint: "helps".to_owned(),
        sharing: Sharing::default(),
    };
    let spec = caipe_crds::resolve(&default_resource(), &BTreeMap::new()).unwrap().spec;
    let role = supervisor(spec, "helper", delegate);
    let front = Arc::new(agent("supervisor", SUPERVISOR, role, Vec::new(), Vec::new()));
    Runs::new(
        front,
        Presentation::Supervisor { tool_output: None },
        store,
        Duration::from_mins(10),
        LOG_MEMORY,
    )
}

/// What the log tells up to the first event for which `last` holds, or to its end.
async fn read(log: &Arc<TaskLog>, last: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut cursor = log.cursor(0);
    let mut events = Vec::new();
    let all = async {
        while let Some(logged) = cursor.next().await {
            events.push(serde_json::to_value(&*logged.event()).unwrap());
            if events.last().is_some_and(&last) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("the log goes on");
    events
}

/// What the log tells from a number on, to its end.
pub(super) async fn read_after(log: &Arc<TaskLog>, after: u64) -> Vec<Value> {
    let mut cursor = log.cursor(after);
    let mut events = Vec::new();
    let all = async {
        while let Some(logged) = cursor.next().await {
            events.push(serde_json::to_value(logged.event()).unwrap());
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("the log goes on");
    events
}

/// The wire events of an answer to `text`.
async fn events(worker: &Worker, text: &str) -> Vec<Value> {
    let (log, _) = runs(worker, Arc::default()).send(Message::user("m", text)).await.unwrap();
    let events = read(&log, |_| false).await;
    assert!(log.snapshot().status.state.ends_stream(), "{events:?}");
    let mut names = Names::default();
    events.into_iter().map(|event| names.mask(event)).collect()
}

/// Ids by the order in which they appear; times by nothing.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, usize>);

impl Names {
    pub(super) fn mask(&mut self, value: Value) -> Value {
        match value {
            Value::Object(object) => Value::Object(
                object
                    .into_iter()
                    .map(|(name, value)| {
                        let value = match (name.as_str(), &value) {
                            ("timestamp", _) => Value::from("time"),
                            (
                                "artifactId" | "messageId" | "taskId" | "contextId" | "id" | "trace_id"
                                | "interaction_id",
                                Value::String(id),
                            ) => self.name(id),
                            _ => self.mask(value),
                        };
                        (name, value)
                    })
                    .collect(),
            ),
            Value::Array(values) => values.into_iter().map(|value| self.mask(value)).collect(),
            Value::String(text) => without_codes(text).into(),
            other => other,
        }
    }

    fn name(&mut self, id: &str) -> Value {
        let next = self.0.len();
        format!("id-{}", self.0.entry(id.to_owned()).or_insert(next)).into()
    }
}

/// The text without the codes of approvals, which depend on the conversation.
fn without_codes(mut text: String) -> String {
    for word in ["approve ", "reject ", "always ", "respond "] {
        let codes: Vec<usize> = text.match_indices(word).map(|(at, _)| at + word.len()).collect();
        for at in codes {
            text.replace_range(at..at + 4, "CODE");
        }
    }
    text
}

async fn same(script: &str, approval: bool, text: &str) {
    let mut first: Option<Vec<Value>> = None;
    for place in PLACEMENTS {
        let worker = Worker::start(place, script, approval).await;
        let events = events(&worker, text).await;
        let first = first.get_or_insert_with(|| events.clone());
        let lines = |events: &[Value]| events.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        assert_eq!(lines(&events), lines(first), "{place:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_stream_does_not_tell_where_an_agent_lives() {
    same(super::scenarios::PLAIN, false, "hello").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_does_it_if_the_agent_asks() {
    let script = "turns: [{ reply: { calls: [{ name: echo, arguments: { text: danger } }] } }]";
    same(script, true, "hello").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_does_it_if_the_agent_fails() {
    same("turns: [{ reply: { error: { status: 401, message: no } } }]", false, "hello").await;
}

/// Two agents at once may meet in any order; each keeps its own.
#[tokio::test(flavor = "multi_thread")]
async fn two_delegations_at_once_end_as_they_began() {
    for place in PLACEMENTS {
        let worker = Worker::start(place, super::scenarios::PLAIN, false).await;
        let events = events(&worker, "twice").await;
        let count = |text: &str| events.iter().filter(|event| event.to_string().contains(text)).count();
        assert_eq!(count("🔧 Supervisor: Calling Agent Helper"), 2, "{place:?}");
        assert_eq!(count("✅ Supervisor: Agent task Helper completed"), 2, "{place:?}");
        assert_eq!(count("🔧 Helper: Calling tool: Echo"), 2, "{place:?}");
        assert_eq!(count("✅ Helper: Tool Echo completed"), 2, "{place:?}");
        assert_eq!(count("complete_result"), 2, "{place:?}");
    }
}

/// A process that dies leaves the agent at work; the next one listens on, and neither the work nor a word of it comes
/// twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_that_dies_is_followed_by_one_that_listens_on() {
    let script = r#"
turns:
  - { when: { turn: 0 }, reply: { calls: [{ name: echo, arguments: { text: first } }, { name: slow, arguments: { ms: 3000 } }] } }
  - { reply: { text: "{% for result in results %}{{ result.content }};{% endfor %}" } }
"#;
    for place in PLACEMENTS.into_iter().filter(|place| *place != Placement::InProcess) {
        let (worker, store) = (Worker::start(place, script, false).await, Arc::<MemoryStore>::default());
        let first = runs(&worker, store.clone());
        let (log, _) = first.send(Message::user("m", "look")).await.unwrap();
        let ended = |event: &Value| event.to_string().contains("✅ Helper: Tool Echo completed");
        read(&log, ended).await;
        let task = log.snapshot().id;
        first.drain(Duration::ZERO).await;

        let next = runs(&worker, store);
        assert_eq!(next.recover().await.unwrap(), 1);
        let log = next.log(&task).await.unwrap();
        let events = read(&log, |_| false).await;
        let count = |text: &str| events.iter().filter(|event| event.to_string().contains(text)).count();
        for line in [
            "🔧 Supervisor: Calling Agent Helper",
            "🔧 Helper: Calling tool: Echo",
            "✅ Helper: Tool Echo completed",
            "🔧 Helper: Calling tool: Slow",
            "✅ Helper: Tool Slow completed",
            "✅ Supervisor: Agent task Helper completed",
        ] {
            assert_eq!(count(line), 1, "{place:?} {line}: {events:#?}");
        }
        assert_eq!(count("first;slow;"), 3, "in its streams and results: {events:#?}");
        assert_eq!(worker.remote.as_ref().map(|remote| remote.calls()), Some(1), "{place:?}");
    }
}
