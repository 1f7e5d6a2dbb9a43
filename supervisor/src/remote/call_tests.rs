//! What goes wrong on the way to an agent, and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use caipe_engine::{
    AgentName, Answered, Decision, DelegateUpdate, DelegationOutcome, EventKind, Form, RemotePlace, Resume,
    ResumePoint, RunEvent,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::RemoteBackend;
use super::super::test_agent::{TestAgent, TestResponse, artifact, backend, status, task, whole};
use super::Ids;
use crate::binding::ACTIVITY_EXTENSION;
use crate::delegation::{AgentBackend, Delegation, DelegationEvent, RunInfo, testing};
use crate::remote::ProbeError;

const PATIENCE: Duration = Duration::from_secs(30);

fn delegation(resume: Option<Resume>) -> Delegation {
    Delegation {
        call: "call".to_owned(),
        agent: AgentName::new("jira"),
        prompt: "look".to_owned(),
        resume,
        run: RunInfo {
            context: "conversation".into(),
            task: "task".into(),
            trace_id: "0af7651916cd43dd8448eb211c80319c".into(),
            ..RunInfo::default()
        },
    }
}

async fn all(updates: BoxStream<'static, DelegationEvent>) -> Vec<DelegateUpdate> {
    let all = updates.map(|event| event.update).collect();
    tokio::time::timeout(PATIENCE, all).await.expect("the delegation ends")
}

async fn run(backend: &Arc<RemoteBackend>, resume: Option<Resume>) -> Vec<DelegateUpdate> {
    all(testing::run(backend.clone(), delegation(resume), CancellationToken::new())).await
}

fn failure(updates: &[DelegateUpdate]) -> &str {
    match updates.last() {
        Some(DelegateUpdate::Finished { outcome: DelegationOutcome::Failed { reason } }) => reason,
        _ => panic!("{updates:?}"),
    }
}

fn answer(updates: &[DelegateUpdate]) -> &str {
    match updates.last() {
        Some(DelegateUpdate::Finished { outcome: DelegationOutcome::Completed { text } }) => text,
        _ => panic!("{updates:?}"),
    }
}

fn tools(updates: &[DelegateUpdate]) -> Vec<&str> {
    let started = updates.iter().filter_map(|update| match update {
        DelegateUpdate::Event { event, .. } => match &event.kind {
            EventKind::ToolStarted { tool, .. } => Some(tool.as_str()),
            _ => None,
        },
        _ => None,
    });
    started.collect()
}

fn started(tool: &str) -> Value {
    artifact(tool, "tool_notification_start", &format!("Tool call started: {tool}"), "🔧")
}

fn done() -> [Value; 2] {
    [artifact("r", "complete_result", "", "3"), status("COMPLETED", "")]
}

fn events(first: Vec<Value>, rest: impl IntoIterator<Item = Value>) -> Vec<Value> {
    first.into_iter().chain(rest).collect()
}

/// An agent that is no other than `jira`, and no program of ours.
async fn foreign(answers: impl Fn(&str, usize) -> TestResponse + Send + Sync + 'static) -> TestAgent {
    TestAgent::start("Jira", json!([]), answers).await
}

/// What was reported, in order: the agents on the way down, then what started or ended.
fn activity(updates: &[DelegateUpdate]) -> Vec<String> {
    let line = |event: &RunEvent| {
        let path: Vec<&str> = event.path.iter().map(AgentName::as_str).chain([""]).collect();
        let what = match &event.kind {
            EventKind::ToolStarted { tool, .. } => format!("{tool} starts"),
            EventKind::ToolFinished { tool, end, .. } => format!("{tool} {end:?}"),
            other => format!("{other:?}"),
        };
        path.join("/") + &what
    };
    let events = updates.iter().filter_map(|update| match update {
        DelegateUpdate::Event { event, .. } => Some(event),
        _ => None,
    });
    events.map(line).collect()
}

#[tokio::test]
async fn the_recorded_task_of_the_fixtures_gives_its_calls_and_its_answer() {
    let card = serde_json::from_str(include_str!("../../../fixtures/wire/a2a_agent_card.json")).unwrap();
    let recorded: Vec<Value> =
        serde_json::from_str(include_str!("../../../fixtures/wire/a2a_task_sse_stream.json")).unwrap();
    let last = recorded.len() - 2;
    let expected = recorded[last]["result"]["artifact"]["parts"][0]["text"].as_str().unwrap().to_owned();
    let test_agent = TestAgent::with_card(card, move |method, _| match method {
        "message/stream" => TestResponse::Recorded(recorded.clone()),
        _ => TestResponse::Status(500),
    })
    .await;
    let jira = backend(&test_agent.url, HeaderMap::new(), Duration::from_secs(20));
    let (target, http) = (jira.target.clone(), jira.http.clone());
    let external = RemoteBackend::external(target, http, Arc::default());

    let updates = run(&external, None).await;
    assert_eq!(answer(&updates), expected);
    assert_eq!(
        expected,
        "Two issues of PAY are open: PAY-7 (card form rejects spaces) and PAY-12 (refund times out)."
    );
    assert_eq!(
        activity(&updates),
        ["jira starts", "search_issues starts", "search_issues Completed", "jira Completed"]
    );
    assert_eq!((test_agent.count("message/stream"), external.calls()), (1, 1));
}

#[tokio::test]
async fn an_unreachable_agent_is_reported_after_retries() {
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let backend =
        backend(&format!("http://user:s3cret@{nowhere}"), HeaderMap::new(), Duration::from_secs(20));
    let updates = run(&backend, None).await;
    assert_eq!(
        failure(&updates),
        format!(
            "it cannot be asked: nothing answers at {nowhere}. Nothing was done. Go on without it, or ask it again later."
        )
    );
    assert_eq!((backend.calls(), backend.active()), (0, 0));
}

#[tokio::test]
async fn refusals_are_reported_and_not_retried() {
    let cases = [
        (TestResponse::Status(401), "credentials (HTTP 401). Nothing was done."),
        (TestResponse::Status(403), "credentials (HTTP 403). Nothing was done."),
        (
            TestResponse::Error(-32602, "no such skill"),
            "it does not take the task: it says: no such skill. Nothing was done.",
        ),
        (
            TestResponse::Events(1, vec![task("SUBMITTED"), status("REJECTED", "not mine")]),
            "it refuses the task: not mine.",
        ),
        (TestResponse::Events(1, vec![task("SUBMITTED"), status("FAILED", "it broke")]), "it broke"),
    ];
    for (say, expected) in cases {
        let test_agent = foreign(move |_, _| say.clone()).await;
        let updates = run(&test_agent.backend(), None).await;
        assert!(failure(&updates).contains(expected), "{updates:?}");
        assert_eq!(test_agent.count("SendStreamingMessage"), 1);
    }
}

#[tokio::test]
async fn another_agent_at_the_address_is_asked_nothing() {
    let test_agent = TestAgent::start("GitHub", json!([]), |_, _| TestResponse::Status(500)).await;
    let backend = test_agent.backend();
    assert!(failure(&run(&backend, None).await).contains("the card is that of \"GitHub\""));
    assert_eq!(test_agent.count("SendStreamingMessage"), 0);
    let probed = backend.probe(PATIENCE).await;
    assert!(matches!(probed, Err(ProbeError::WrongCard { .. })), "{probed:?}");
    let (target, http) = (backend.target.clone(), backend.http.clone());
    let theirs = RemoteBackend::external(target, http, Arc::default());
    assert_eq!(theirs.probe(PATIENCE).await.unwrap().card_name, "GitHub");
}

#[tokio::test]
async fn a_lost_connection_is_taken_up_again_where_it_was_lost() {
    let test_agent = foreign(|method, nth| match (method, nth) {
        ("SendStreamingMessage", 0) => TestResponse::Broken(1, vec![task("SUBMITTED"), started("one")]),
        ("SubscribeToTask", 0) => {
            TestResponse::Events(2, events(vec![task("WORKING"), started("two")], done()))
        }
        _ => TestResponse::Status(500),
    })
    .await;
    let backend = test_agent.backend();
    let updates = run(&backend, None).await;
    assert_eq!((answer(&updates), tools(&updates)), ("3", vec!["one", "two"]));
    assert_eq!(
        (test_agent.count("SendStreamingMessage"), backend.calls()),
        (1, 1),
        "the work is asked for once"
    );
    let again = &test_agent.asked()[2];
    assert_eq!(again.headers["last-event-id"], "2", "{again:?}");
}

#[tokio::test]
async fn a_call_that_broke_before_its_answer_is_looked_for_and_not_made_again() {
    let test_agent = foreign(|method, _| match method {
        "SendStreamingMessage" => TestResponse::Broken(1, Vec::new()),
        "ListTasks" => TestResponse::Result(json!({"tasks": []})),
        _ => TestResponse::Status(500),
    })
    .await;
    let updates = run(&test_agent.backend(), None).await;
    assert!(failure(&updates).starts_with("the connection broke before it answered"), "{updates:?}");
    assert!(failure(&updates).contains("It may still be at work"));
    assert_eq!((test_agent.count("SendStreamingMessage"), test_agent.count("ListTasks")), (1, 1));
}

#[tokio::test]
async fn an_agent_of_this_program_gets_the_same_message_again() {
    let ours = json!([{"uri": ACTIVITY_EXTENSION}]);
    let test_agent = TestAgent::start("Jira", ours, |method, nth| match (method, nth) {
        ("SendStreamingMessage", 0) => TestResponse::Broken(1, Vec::new()),
        ("SendStreamingMessage", _) => TestResponse::Events(1, events(vec![task("SUBMITTED")], done())),
        _ => TestResponse::Error(-32601, "no such method"),
    })
    .await;
    let backend = test_agent.backend();
    assert_eq!(answer(&run(&backend, None).await), "3");
    let asked = test_agent.asked();
    let sent: Vec<&Value> = asked
        .iter()
        .filter(|asked| asked.method == "SendStreamingMessage")
        .map(|asked| &asked.params["message"])
        .collect();
    assert_eq!(sent.len(), 2);
    assert_eq!(
        (&sent[0]["messageId"], &sent[0]["contextId"]),
        (&sent[1]["messageId"], &sent[1]["contextId"])
    );
    assert_eq!(backend.calls(), 1);
}

#[tokio::test]
async fn another_program_gets_no_task_if_calls_need_approval() {
    let answers = |method: &str, _: usize| match method {
        "SendStreamingMessage" => TestResponse::Events(1, events(vec![task("SUBMITTED")], done())),
        _ => TestResponse::Error(-32601, "no such method"),
    };
    let foreign = TestAgent::start("Jira", json!([]), answers).await;
    let backend = foreign.guarded_backend(&["delete_*"]);
    let updates = run(&backend, None).await;
    assert!(failure(&updates).contains("requireApproval without asking"), "{updates:?}");
    assert_eq!(foreign.count("SendStreamingMessage"), 0);
    assert_eq!(backend.probe(PATIENCE).await, Err(ProbeError::Unguarded("jira".to_owned())));
    let refusal = backend.begin(&delegation(None)).await.unwrap_err();
    assert!(refusal.contains("requireApproval without asking"), "{refusal}");
    assert_eq!(foreign.count("SendMessage"), 0);

    let ours = TestAgent::start("Jira", json!([{"uri": ACTIVITY_EXTENSION}]), answers).await;
    assert_eq!(answer(&run(&ours.guarded_backend(&["delete_*"]), None).await), "3");
    let sent = ours.asked().into_iter().find(|asked| asked.method == "SendStreamingMessage").unwrap();
    assert_eq!(sent.params["message"]["metadata"]["require_approval"], json!(["delete_*"]));
}

#[tokio::test]
async fn an_answer_that_is_only_in_the_task_is_read_there() {
    let test_agent = foreign(|method, _| match method {
        "SendStreamingMessage" => TestResponse::Events(1, vec![task("SUBMITTED"), status("COMPLETED", "")]),
        "GetTask" => {
            let mut task = whole("COMPLETED");
            task["artifacts"] = json!([{"artifactId": "a", "parts": [{"text": "from the task"}]}]);
            TestResponse::Result(task)
        }
        _ => TestResponse::Status(500),
    })
    .await;
    assert_eq!(answer(&run(&test_agent.backend(), None).await), "from the task");
    assert_eq!(test_agent.count("SendStreamingMessage"), 1);
}

#[tokio::test]
async fn a_stream_without_an_end_is_asked_how_it_ended() {
    let test_agent = foreign(|method, nth| match (method, nth) {
        ("SendStreamingMessage", _) => TestResponse::Events(1, vec![task("SUBMITTED")]),
        ("GetTask", 0) => TestResponse::Result(whole("WORKING")),
        ("GetTask", _) => {
            let mut task = whole("COMPLETED");
            task["artifacts"] = json!([{"artifactId": "a", "parts": [{"text": "late"}]}]);
            TestResponse::Result(task)
        }
        _ => TestResponse::Error(-32004, "nobody may follow"),
    })
    .await;
    assert_eq!(answer(&run(&test_agent.backend(), None).await), "late");
}

#[tokio::test]
async fn a_silent_agent_is_given_up() {
    let test_agent = foreign(|_, _| TestResponse::Silent(1, vec![task("SUBMITTED"), started("one")])).await;
    let backend = backend(&test_agent.url, HeaderMap::new(), Duration::from_secs(1));
    let updates = run(&backend, None).await;
    assert_eq!(
        failure(&updates),
        "it has given no sign of life for 1 s. It may still be at work: look what was done before you ask it again. \
         The outcome of these calls is unknown: one."
    );
    let ended = |update: &DelegateUpdate| match update {
        DelegateUpdate::Event { event, .. } => matches!(event.kind, EventKind::ToolFinished { .. }),
        _ => false,
    };
    assert_eq!(updates.iter().filter(|update| ended(update)).count(), 1, "what began has ended: {updates:?}");
}

#[tokio::test]
async fn cancelling_reaches_the_agent() {
    let test_agent = foreign(|method, _| match method {
        "CancelTask" => TestResponse::Result(whole("CANCELED")),
        _ => TestResponse::Silent(1, vec![task("SUBMITTED"), started("one")]),
    })
    .await;
    let (backend, cancel) = (test_agent.backend(), CancellationToken::new());
    let mut updates = testing::run(backend.clone(), delegation(None), cancel.clone());
    while !matches!(updates.next().await.unwrap().update, DelegateUpdate::Event { .. }) {}
    assert_eq!(backend.active(), 1);
    cancel.cancel();
    let last = all(updates).await.pop().unwrap();
    assert_eq!(last, DelegateUpdate::Finished { outcome: DelegationOutcome::Canceled });
    assert_eq!((test_agent.count("CancelTask"), backend.active()), (1, 0));
}

#[tokio::test]
async fn dropping_a_delegation_cancels_no_task() {
    let test_agent = foreign(|_, _| TestResponse::Silent(1, vec![task("SUBMITTED")])).await;
    let backend = test_agent.backend();
    let mut updates = testing::run(backend.clone(), delegation(None), CancellationToken::new());
    assert!(matches!(updates.next().await.unwrap().update, DelegateUpdate::Accepted { .. }));
    drop(updates);
    let left = async {
        while backend.active() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, left).await.expect("the connection is closed");
    assert_eq!(test_agent.count("CancelTask"), 0);
}

fn remote(place: RemotePlace) -> Resume {
    let from = ResumePoint::Remote { task: "t".to_owned(), context: "k".to_owned(), place };
    Resume { from: Some(from), answered: None }
}

#[tokio::test]
async fn a_resumed_delegation_follows_the_same_task_and_repeats_no_event() {
    let test_agent = foreign(|method, _| match method {
        "SubscribeToTask" => {
            let mut known = task("WORKING");
            known["task"]["artifacts"] = json!([started("one")["artifactUpdate"]["artifact"]]);
            TestResponse::Events(7, events(vec![known, started("two")], done()))
        }
        _ => TestResponse::Status(500),
    })
    .await;
    let backend = test_agent.backend();
    let updates = run(&backend, Some(remote(RemotePlace { seq: Some(7), shown: 1 }))).await;
    assert_eq!((answer(&updates), tools(&updates)), ("3", vec!["two"]));
    assert_eq!((test_agent.count("SendStreamingMessage"), backend.calls()), (0, 0));
    assert_eq!(test_agent.asked()[1].headers["last-event-id"], "7");
}

#[tokio::test]
async fn who_takes_over_what_may_have_been_sent_looks_before() {
    let context = Ids::of(&delegation(None)).context;
    for (context, sent) in [(context, 0), ("of another".to_owned(), 1)] {
        let known = json!({"id": "t", "contextId": context, "status": {"state": "TASK_STATE_WORKING"}});
        let test_agent = foreign(move |method, _| match method {
            "ListTasks" => TestResponse::Result(json!({"tasks": [known]})),
            "SubscribeToTask" | "SendStreamingMessage" => {
                TestResponse::Events(1, events(vec![task("WORKING")], done()))
            }
            _ => TestResponse::Status(500),
        })
        .await;
        let backend = test_agent.backend();
        let updates = run(&backend, Some(Resume { from: None, answered: None })).await;
        assert_eq!(answer(&updates), "3");
        assert_eq!((test_agent.count("SendStreamingMessage"), backend.calls()), (sent, sent as u64));
    }
}

#[tokio::test]
async fn a_foreign_agent_that_cannot_list_tasks_gets_no_message_twice() {
    let ours = json!([{"uri": ACTIVITY_EXTENSION}]);
    for (extensions, sent) in [(json!([]), 0), (ours, 1)] {
        let says = |method: &str, _: usize| match method {
            "ListTasks" => TestResponse::Error(-32601, "Method not found"),
            _ => TestResponse::Events(1, events(vec![task("WORKING")], done())),
        };
        let test_agent = TestAgent::start("Jira", extensions, says).await;
        let updates = run(&test_agent.backend(), Some(Resume { from: None, answered: None })).await;
        assert_eq!(test_agent.count("SendStreamingMessage"), sent, "{updates:?}");
        if sent == 0 {
            assert_eq!(
                failure(&updates),
                "it may have been asked before a restart, and cannot say. It may still be at work: look what was done \
                 before you ask it again."
            );
        }
    }
}

#[tokio::test]
async fn a_task_that_never_changes_is_given_up() {
    let test_agent = foreign(|method, _| match method {
        "SubscribeToTask" => TestResponse::Error(-32004, "nobody may follow"),
        "GetTask" => TestResponse::Result(whole("WORKING")),
        _ => TestResponse::Status(500),
    })
    .await;
    let backend = backend(&test_agent.url, HeaderMap::new(), Duration::from_secs(1));
    let updates = run(&backend, Some(remote(RemotePlace::default()))).await;
    assert!(failure(&updates).starts_with("its task has shown nothing new for 1 s."), "{updates:?}");
}

#[tokio::test]
async fn a_task_that_the_agent_does_not_know_is_reported() {
    let test_agent = foreign(|_, _| TestResponse::Error(-32001, "Task not found")).await;
    let updates = run(&test_agent.backend(), Some(remote(RemotePlace::default()))).await;
    assert!(failure(&updates).starts_with("it does not know the task any more"), "{updates:?}");
    assert_eq!(test_agent.count("SendStreamingMessage"), 0, "the work is not done twice");
}

#[tokio::test]
async fn calls_of_a_task_that_an_agent_lost_have_an_unknown_outcome() {
    for extensions in [json!([]), json!([{"uri": ACTIVITY_EXTENSION}])] {
        let test_agent = TestAgent::start("Jira", extensions, |method, _| match method {
            "SendStreamingMessage" => {
                let ended = artifact("one-ends", "tool_notification_end", "Tool call completed: one", "✅");
                TestResponse::Broken(1, vec![task("SUBMITTED"), started("one"), ended, started("two")])
            }
            _ => TestResponse::Error(-32001, "Task not found"),
        })
        .await;
        let updates = run(&test_agent.backend(), None).await;
        assert!(
            failure(&updates).ends_with(" The outcome of these calls is unknown: two."),
            "the call that ended is known: {updates:?}"
        );
        let activity = activity(&updates);
        assert!(activity.last().unwrap().contains("Outcome unknown: two"), "people see it: {activity:?}");
        assert_eq!(test_agent.count("SendStreamingMessage"), 1, "the work is not done twice");
    }
}

#[tokio::test]
async fn a_cancellation_is_over_only_once_the_agent_has_answered_it() {
    for (response, expected) in [
        (TestResponse::Error(-32002, "It has ended"), Ok(())),
        (TestResponse::Status(401), Err("denied".to_owned())),
        (TestResponse::Status(404), Err("status".to_owned())),
        (TestResponse::Status(500), Err("status".to_owned())),
    ] {
        let response = std::sync::Mutex::new(Some(response));
        let test_agent = foreign(move |_, _| response.lock().unwrap().take().unwrap()).await;
        assert_eq!(test_agent.backend().cancel_task("t").await, expected);
    }
}

#[tokio::test]
async fn an_answer_that_did_not_arrive_is_asked_for_again() {
    let form = json!({"artifactId": "f", "name": "UserInputMetaData", "parts": [{"data":
        {"user_input": true, "response": "Really?", "action_name": "delete", "input_fields": []}}]});
    let test_agent = foreign(move |method, _| match method {
        "SendStreamingMessage" => TestResponse::Broken(1, Vec::new()),
        "SubscribeToTask" => {
            let mut waits = task("INPUT_REQUIRED");
            waits["task"]["artifacts"] = json!([form]);
            TestResponse::Events(3, vec![waits])
        }
        _ => TestResponse::Status(500),
    })
    .await;
    let answered =
        Answered { form: Form::default(), decisions: vec![Decision::Approve], ..Answered::default() };
    let resume = Resume { answered: Some(answered), ..remote(RemotePlace::default()) };
    let updates = run(&test_agent.backend(), Some(resume)).await;
    let Some(DelegateUpdate::Asks { form }) = updates.last() else { panic!("{updates:?}") };
    assert_eq!(form.description, "The agent jira asks: Really?");
    let sent = test_agent.asked().into_iter().find(|asked| asked.method == "SendStreamingMessage").unwrap();
    assert_eq!(sent.params["message"]["taskId"], "t");
}

/// After a crash of the supervisor, the agent may have asked its next question already.
#[tokio::test]
async fn a_foreign_agent_gets_no_answer_twice() {
    let test_agent = foreign(|method, _| match method {
        "SubscribeToTask" => TestResponse::Events(3, vec![task("INPUT_REQUIRED")]),
        _ => TestResponse::Status(500),
    })
    .await;
    let answered = Answered { form: Form::default(), decisions: vec![Decision::Approve], is_repeated: true };
    let resume = Resume { answered: Some(answered), ..remote(RemotePlace::default()) };
    let updates = run(&test_agent.backend(), Some(resume)).await;
    assert!(matches!(updates.last(), Some(DelegateUpdate::Asks { .. })), "{updates:?}");
    assert_eq!(test_agent.count("SendStreamingMessage"), 0);
}

#[tokio::test]
async fn an_abandoned_question_cancels_its_task() {
    let test_agent = foreign(|_, _| TestResponse::Result(whole("CANCELED"))).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let updates =
        all(testing::run(test_agent.backend(), delegation(Some(remote(RemotePlace::default()))), cancel))
            .await;
    assert_eq!(updates, [DelegateUpdate::Finished { outcome: DelegationOutcome::Canceled }]);
    assert_eq!(test_agent.count("CancelTask"), 1);
}

#[tokio::test]
async fn what_may_have_been_sent_before_a_restart_is_canceled_too() {
    let context = Ids::of(&delegation(None)).context;
    for tasks in
        [vec![json!({"id": "t", "contextId": context, "status": {"state": "TASK_STATE_WORKING"}})], vec![]]
    {
        let count = tasks.len();
        let test_agent = foreign(move |method, _| match method {
            "ListTasks" => TestResponse::Result(json!({ "tasks": tasks })),
            "SubscribeToTask" => TestResponse::Silent(1, vec![task("WORKING")]),
            "CancelTask" => TestResponse::Result(whole("CANCELED")),
            _ => TestResponse::Status(500),
        })
        .await;
        let cancel = CancellationToken::new();
        cancel.cancel();
        let resume = Resume { from: None, answered: None };
        let updates = all(testing::run(test_agent.backend(), delegation(Some(resume)), cancel)).await;
        assert_eq!(updates.last(), Some(&DelegateUpdate::Finished { outcome: DelegationOutcome::Canceled }));
        assert_eq!((test_agent.count("CancelTask"), test_agent.count("SendStreamingMessage")), (count, 0));
    }
}

#[tokio::test]
async fn an_agent_that_wants_credentials_is_stopped() {
    let test_agent = foreign(|method, _| match method {
        "CancelTask" => TestResponse::Result(whole("CANCELED")),
        _ => TestResponse::Events(1, vec![task("SUBMITTED"), status("AUTH_REQUIRED", "log in")]),
    })
    .await;
    let updates = run(&test_agent.backend(), None).await;
    assert!(
        failure(&updates).starts_with("it needs credentials that it does not have: log in."),
        "{updates:?}"
    );
    assert_eq!(test_agent.count("CancelTask"), 1);
}

#[tokio::test]
async fn every_request_has_the_headers_and_none_is_repeated_to_anybody() {
    let test_agent = foreign(|_, _| TestResponse::Error(-32000, "who is s3cret-token?")).await;
    let mut headers = HeaderMap::new();
    let mut token = HeaderValue::from_static("Bearer s3cret-token");
    token.set_sensitive(true);
    headers.insert("authorization", token);
    let backend = backend(&test_agent.url, headers, Duration::from_secs(20));
    let updates = run(&backend, None).await;
    assert!(!format!("{updates:?}{backend:?}").contains("s3cret"), "{updates:?} {backend:?}");
    for asked in test_agent.asked() {
        assert_eq!(asked.headers["authorization"], "Bearer s3cret-token", "{}", asked.method);
    }
    let sent = &test_agent.asked()[1];
    let trace = sent.headers["traceparent"].to_str().unwrap();
    assert!(trace.starts_with("00-0af7651916cd43dd8448eb211c80319c-"), "{trace}");
    assert_eq!(sent.params["message"]["metadata"]["trace_id"], "0af7651916cd43dd8448eb211c80319c");
}

#[tokio::test]
async fn a_slow_listener_loses_nothing() {
    const MANY: usize = 2000;
    let test_agent = foreign(|_, _| {
        let many: Vec<Value> = (0..MANY).map(|number| started(&format!("tool{number}"))).collect();
        TestResponse::Events(1, events(events(vec![task("SUBMITTED")], many), done()))
    })
    .await;
    let mut updates = testing::run(test_agent.backend(), delegation(None), CancellationToken::new());
    let mut seen = Vec::new();
    while let Some(update) = updates.next().await {
        tokio::task::yield_now().await;
        seen.push(update.update);
    }
    let expected: Vec<String> = (0..MANY).map(|number| format!("tool{number}")).collect();
    assert_eq!(tools(&seen), expected);
    assert_eq!(answer(&seen), "3");
}

/// A new task whose calls may all be repeated.
fn repeatable() -> Value {
    let mut begun = task("SUBMITTED");
    begun["task"]["metadata"] = json!({ACTIVITY_EXTENSION: {"event": "repeatable_run", "status": "running"}});
    begun
}

/// An agent of this program that loses its first tasks, as many as `lost`, after these events.
async fn forgetful(lost: usize, first: Vec<Value>) -> TestAgent {
    let ours = json!([{"uri": ACTIVITY_EXTENSION}]);
    TestAgent::start("Jira", ours, move |method, nth| match method {
        "SendStreamingMessage" if nth < lost => TestResponse::Broken(1, first.clone()),
        "SendStreamingMessage" => TestResponse::Events(1, events(vec![task("SUBMITTED")], done())),
        _ => TestResponse::Error(-32001, "no such task"),
    })
    .await
}

fn notices(updates: &[DelegateUpdate]) -> usize {
    activity(updates).iter().filter(|line| line.contains("has lost its work and starts again")).count()
}

#[tokio::test]
async fn a_lost_repeatable_task_is_started_again_as_another_task() {
    let first = vec![repeatable(), started("one"), artifact("w", "streaming_result", "", "The ans")];
    let agent = forgetful(2, first).await;
    let backend = agent.backend();
    let mut delegation = delegation(None);
    delegation.run.agents_words = true;
    let updates = all(testing::run(backend, delegation, CancellationToken::new())).await;
    assert_eq!((answer(&updates), notices(&updates)), ("3", 2), "{updates:?}");
    let reset = |line: &&String| line.contains("TextReset");
    assert_eq!(
        activity(&updates).iter().filter(reset).count(),
        2,
        "the lost text is taken back: {updates:?}"
    );
    let ended = |line: &&String| line.as_str() == "one Failed";
    assert_eq!(activity(&updates).iter().filter(ended).count(), 2, "what began has ended: {updates:?}");
    let mut sent: Vec<String> = agent
        .asked()
        .iter()
        .filter(|asked| asked.method == "SendStreamingMessage")
        .flat_map(|asked| ["messageId", "contextId"].map(|id| asked.params["message"][id].to_string()))
        .collect();
    sent.sort_unstable();
    sent.dedup();
    assert_eq!(sent.len(), 6, "each time another message in another conversation");
}

#[tokio::test]
async fn a_repeatable_task_that_is_lost_before_it_begins_is_started_again() {
    let agent = forgetful(1, vec![repeatable()]).await;
    let updates = run(&agent.backend(), None).await;
    assert_eq!((answer(&updates), notices(&updates)), ("3", 1), "{updates:?}");
}

#[tokio::test]
async fn a_task_that_is_lost_again_and_again_fails() {
    let agent = forgetful(9, vec![repeatable(), started("one")]).await;
    let updates = run(&agent.backend(), None).await;
    assert_eq!(agent.count("SendStreamingMessage"), 4);
    let reason = failure(&updates);
    assert!(reason.starts_with("it does not know the task any more"), "{reason}");
    assert!(reason.ends_with("The outcome of these calls is unknown: one."), "{reason}");
}

#[tokio::test]
async fn a_lost_task_is_not_started_again_if_a_call_must_not_be_repeated() {
    for first in [vec![task("SUBMITTED"), started("one")], vec![task("SUBMITTED")]] {
        let agent = forgetful(1, first.clone()).await;
        let updates = run(&agent.backend(), None).await;
        assert_eq!((agent.count("SendStreamingMessage"), notices(&updates)), (1, 0));
        let reason = failure(&updates);
        let expected = "it does not know the task any more, as after a restart without a store. It may still be at work: \
                        look what was done before you ask it again.";
        assert!(reason.starts_with(expected), "{reason}");
        assert_eq!(
            reason.ends_with("The outcome of these calls is unknown: one."),
            first.len() == 2,
            "{reason}"
        );
    }
}

#[tokio::test]
async fn a_task_is_not_started_again_because_of_another_error_or_after_an_answer() {
    let ours = || json!([{"uri": ACTIVITY_EXTENSION}]);
    let agent = TestAgent::start("Jira", ours(), |method, _| match method {
        "SendStreamingMessage" => TestResponse::Broken(1, vec![repeatable()]),
        _ => TestResponse::Error(-32603, "the disk is full"),
    })
    .await;
    let updates = run(&agent.backend(), None).await;
    assert!(
        failure(&updates).starts_with("it does not go on with the task: the disk is full."),
        "{updates:?}"
    );
    assert_eq!(agent.count("SendStreamingMessage"), 1);

    let agent = forgetful(9, vec![repeatable()]).await;
    let from =
        ResumePoint::Remote { task: "t".to_owned(), context: "k".to_owned(), place: RemotePlace::default() };
    let answered =
        Some(Answered { form: Form::default(), decisions: vec![Decision::Approve], is_repeated: false });
    let updates = run(&agent.backend(), Some(Resume { from: Some(from), answered })).await;
    assert!(failure(&updates).starts_with("it does not know the task any more"), "{updates:?}");
    assert_eq!(agent.count("SendStreamingMessage"), 1, "the answer of a person is given once");
}
