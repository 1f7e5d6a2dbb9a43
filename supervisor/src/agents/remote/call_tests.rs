//! What goes wrong on the way to an agent, and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};
use caipe_engine::{
    AgentName, Answered, Decision, DelegateUpdate, DelegationOutcome, EventKind, Form, RemotePlace, Resume,
    ResumePoint, RunEvent,
};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::Remote;
use super::super::peer::{Peer, Say, artifact, home, status, task, whole};
use super::Ids;
use crate::agents::{Delegation, Home, ProbeError, Updates};
use crate::binding::ACTIVITY_EXTENSION;
use crate::run::RunInfo;

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

async fn all(updates: Updates) -> Vec<DelegateUpdate> {
    let all = updates.map(|update| update.news).collect();
    tokio::time::timeout(PATIENCE, all).await.expect("the delegation ends")
}

async fn run(home: &Arc<Remote>, resume: Option<Resume>) -> Vec<DelegateUpdate> {
    all(home.run(delegation(resume), CancellationToken::new())).await
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
async fn foreign(answers: impl Fn(&str, usize) -> Say + Send + Sync + 'static) -> Peer {
    Peer::start("Jira", json!([]), answers).await
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
    let card = serde_json::from_str(include_str!("../../../../fixtures/wire/a2a_agent_card.json")).unwrap();
    let recorded: Vec<Value> =
        serde_json::from_str(include_str!("../../../../fixtures/wire/a2a_task_sse_stream.json")).unwrap();
    let last = recorded.len() - 2;
    let expected = recorded[last]["result"]["artifact"]["parts"][0]["text"].as_str().unwrap().to_owned();
    let peer = Peer::with_card(card, move |method, _| match method {
        "message/stream" => Say::Recorded(recorded.clone()),
        _ => Say::Status(500),
    })
    .await;
    let jira = home(&peer.url, HeaderMap::new(), Duration::from_secs(20));
    let (target, http) = (jira.shared.target.clone(), jira.shared.http.clone());
    let external = Remote::external(target, http, Arc::default());

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
    assert_eq!((peer.count("message/stream"), external.calls()), (1, 1));
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_told_after_a_few_tries() {
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home = home(&format!("http://user:s3cret@{nowhere}"), HeaderMap::new(), Duration::from_secs(20));
    let updates = run(&home, None).await;
    assert_eq!(
        failure(&updates),
        format!(
            "it cannot be asked: nothing answers at {nowhere}. Nothing was done. Go on without it, or ask it again later."
        )
    );
    assert_eq!((home.calls(), home.active()), (0, 0));
}

#[tokio::test]
async fn refusals_are_told_and_not_tried_again() {
    let cases = [
        (Say::Status(401), "credentials (HTTP 401). Nothing was done."),
        (Say::Status(403), "credentials (HTTP 403). Nothing was done."),
        (
            Say::Error(-32602, "no such skill"),
            "it does not take the task: it says: no such skill. Nothing was done.",
        ),
        (
            Say::Events(1, vec![task("SUBMITTED"), status("REJECTED", "not mine")]),
            "it refuses the task: not mine.",
        ),
        (Say::Events(1, vec![task("SUBMITTED"), status("FAILED", "it broke")]), "it broke"),
    ];
    for (say, expected) in cases {
        let peer = foreign(move |_, _| say.clone()).await;
        let updates = run(&peer.home(), None).await;
        assert!(failure(&updates).contains(expected), "{updates:?}");
        assert_eq!(peer.count("SendStreamingMessage"), 1);
    }
}

#[tokio::test]
async fn another_agent_at_the_address_is_asked_nothing() {
    let peer = Peer::start("GitHub", json!([]), |_, _| Say::Status(500)).await;
    let home = peer.home();
    assert!(failure(&run(&home, None).await).contains("the card is that of \"GitHub\""));
    assert_eq!(peer.count("SendStreamingMessage"), 0);
    let probed = home.probe(PATIENCE).await;
    assert!(matches!(probed, Err(ProbeError::WrongCard { .. })), "{probed:?}");
    let (target, http) = (home.shared.target.clone(), home.shared.http.clone());
    let theirs = Remote::external(target, http, Arc::default());
    assert_eq!(theirs.probe(PATIENCE).await.unwrap().card_name, "GitHub");
}

#[tokio::test]
async fn a_lost_connection_is_taken_up_again_where_it_was_lost() {
    let peer = foreign(|method, nth| match (method, nth) {
        ("SendStreamingMessage", 0) => Say::Broken(1, vec![task("SUBMITTED"), started("one")]),
        ("SubscribeToTask", 0) => Say::Events(2, events(vec![task("WORKING"), started("two")], done())),
        _ => Say::Status(500),
    })
    .await;
    let home = peer.home();
    let updates = run(&home, None).await;
    assert_eq!((answer(&updates), tools(&updates)), ("3", vec!["one", "two"]));
    assert_eq!((peer.count("SendStreamingMessage"), home.calls()), (1, 1), "the work is asked for once");
    let again = &peer.asked()[2];
    assert_eq!(again.headers["last-event-id"], "2", "{again:?}");
}

#[tokio::test]
async fn a_call_that_broke_before_its_answer_is_looked_for_and_not_made_again() {
    let peer = foreign(|method, _| match method {
        "SendStreamingMessage" => Say::Broken(1, Vec::new()),
        "ListTasks" => Say::Result(json!({"tasks": []})),
        _ => Say::Status(500),
    })
    .await;
    let updates = run(&peer.home(), None).await;
    assert!(failure(&updates).starts_with("the connection broke before it answered"), "{updates:?}");
    assert!(failure(&updates).contains("It may still be at work"));
    assert_eq!((peer.count("SendStreamingMessage"), peer.count("ListTasks")), (1, 1));
}

#[tokio::test]
async fn one_of_ours_is_told_again_under_the_same_ids() {
    let ours = json!([{"uri": ACTIVITY_EXTENSION}]);
    let peer = Peer::start("Jira", ours, |method, nth| match (method, nth) {
        ("SendStreamingMessage", 0) => Say::Broken(1, Vec::new()),
        ("SendStreamingMessage", _) => Say::Events(1, events(vec![task("SUBMITTED")], done())),
        _ => Say::Error(-32601, "no such method"),
    })
    .await;
    let home = peer.home();
    assert_eq!(answer(&run(&home, None).await), "3");
    let asked = peer.asked();
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
    assert_eq!(home.calls(), 1);
}

#[tokio::test]
async fn an_answer_that_is_only_in_the_task_is_read_there() {
    let peer = foreign(|method, _| match method {
        "SendStreamingMessage" => Say::Events(1, vec![task("SUBMITTED"), status("COMPLETED", "")]),
        "GetTask" => {
            let mut task = whole("COMPLETED");
            task["artifacts"] = json!([{"artifactId": "a", "parts": [{"text": "from the task"}]}]);
            Say::Result(task)
        }
        _ => Say::Status(500),
    })
    .await;
    assert_eq!(answer(&run(&peer.home(), None).await), "from the task");
    assert_eq!(peer.count("SendStreamingMessage"), 1);
}

#[tokio::test]
async fn a_stream_without_an_end_is_asked_how_it_ended() {
    let peer = foreign(|method, nth| match (method, nth) {
        ("SendStreamingMessage", _) => Say::Events(1, vec![task("SUBMITTED")]),
        ("GetTask", 0) => Say::Result(whole("WORKING")),
        ("GetTask", _) => {
            let mut task = whole("COMPLETED");
            task["artifacts"] = json!([{"artifactId": "a", "parts": [{"text": "late"}]}]);
            Say::Result(task)
        }
        _ => Say::Error(-32004, "nobody may follow"),
    })
    .await;
    assert_eq!(answer(&run(&peer.home(), None).await), "late");
}

#[tokio::test]
async fn a_silent_agent_is_given_up() {
    let peer = foreign(|_, _| Say::Silent(1, vec![task("SUBMITTED"), started("one")])).await;
    let home = home(&peer.url, HeaderMap::new(), Duration::from_secs(1));
    let updates = run(&home, None).await;
    assert_eq!(
        failure(&updates),
        "it has given no sign of life for 1 s. It may still be at work: look what was done before you ask it again."
    );
    let ended = |update: &DelegateUpdate| match update {
        DelegateUpdate::Event { event, .. } => matches!(event.kind, EventKind::ToolFinished { .. }),
        _ => false,
    };
    assert_eq!(updates.iter().filter(|update| ended(update)).count(), 1, "what began has ended: {updates:?}");
}

#[tokio::test]
async fn cancelling_reaches_the_agent() {
    let peer = foreign(|method, _| match method {
        "CancelTask" => Say::Result(whole("CANCELED")),
        _ => Say::Silent(1, vec![task("SUBMITTED"), started("one")]),
    })
    .await;
    let (home, cancel) = (peer.home(), CancellationToken::new());
    let mut updates = home.run(delegation(None), cancel.clone());
    while !matches!(updates.next().await.unwrap().news, DelegateUpdate::Event { .. }) {}
    assert_eq!(home.active(), 1);
    cancel.cancel();
    let last = all(updates).await.pop().unwrap();
    assert_eq!(last, DelegateUpdate::Finished { outcome: DelegationOutcome::Canceled });
    assert_eq!((peer.count("CancelTask"), home.active()), (1, 0));
}

#[tokio::test]
async fn whoever_only_leaves_stops_nothing() {
    let peer = foreign(|_, _| Say::Silent(1, vec![task("SUBMITTED")])).await;
    let home = peer.home();
    let mut updates = home.run(delegation(None), CancellationToken::new());
    assert!(matches!(updates.next().await.unwrap().news, DelegateUpdate::Accepted { .. }));
    drop(updates);
    let left = async {
        while home.active() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, left).await.expect("it hangs up");
    assert_eq!(peer.count("CancelTask"), 0);
}

fn remote(place: RemotePlace) -> Resume {
    let from = ResumePoint::Remote { task: "t".to_owned(), context: "k".to_owned(), place };
    Resume { from: Some(from), answered: None }
}

#[tokio::test]
async fn who_takes_over_follows_the_same_task_and_tells_nothing_twice() {
    let peer = foreign(|method, _| match method {
        "SubscribeToTask" => {
            let mut known = task("WORKING");
            known["task"]["artifacts"] = json!([started("one")["artifactUpdate"]["artifact"]]);
            Say::Events(7, events(vec![known, started("two")], done()))
        }
        _ => Say::Status(500),
    })
    .await;
    let home = peer.home();
    let updates = run(&home, Some(remote(RemotePlace { seq: Some(7), told: 1 }))).await;
    assert_eq!((answer(&updates), tools(&updates)), ("3", vec!["two"]));
    assert_eq!((peer.count("SendStreamingMessage"), home.calls()), (0, 0));
    assert_eq!(peer.asked()[1].headers["last-event-id"], "7");
}

#[tokio::test]
async fn who_takes_over_what_may_have_been_sent_looks_before() {
    let context = Ids::of(&delegation(None)).context;
    for (context, sent) in [(context, 0), ("of another".to_owned(), 1)] {
        let known = json!({"id": "t", "contextId": context, "status": {"state": "TASK_STATE_WORKING"}});
        let peer = foreign(move |method, _| match method {
            "ListTasks" => Say::Result(json!({"tasks": [known]})),
            "SubscribeToTask" | "SendStreamingMessage" => {
                Say::Events(1, events(vec![task("WORKING")], done()))
            }
            _ => Say::Status(500),
        })
        .await;
        let home = peer.home();
        let updates = run(&home, Some(Resume { from: None, answered: None })).await;
        assert_eq!(answer(&updates), "3");
        assert_eq!((peer.count("SendStreamingMessage"), home.calls()), (sent, sent as u64));
    }
}

#[tokio::test]
async fn a_stranger_who_cannot_say_what_it_was_told_is_not_told_again() {
    let ours = json!([{"uri": ACTIVITY_EXTENSION}]);
    for (extensions, sent) in [(json!([]), 0), (ours, 1)] {
        let says = |method: &str, _: usize| match method {
            "ListTasks" => Say::Error(-32601, "Method not found"),
            _ => Say::Events(1, events(vec![task("WORKING")], done())),
        };
        let peer = Peer::start("Jira", extensions, says).await;
        let updates = run(&peer.home(), Some(Resume { from: None, answered: None })).await;
        assert_eq!(peer.count("SendStreamingMessage"), sent, "{updates:?}");
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
    let peer = foreign(|method, _| match method {
        "SubscribeToTask" => Say::Error(-32004, "nobody may follow"),
        "GetTask" => Say::Result(whole("WORKING")),
        _ => Say::Status(500),
    })
    .await;
    let home = home(&peer.url, HeaderMap::new(), Duration::from_secs(1));
    let updates = run(&home, Some(remote(RemotePlace::default()))).await;
    assert!(failure(&updates).starts_with("its task has shown nothing new for 1 s."), "{updates:?}");
}

#[tokio::test]
async fn a_task_that_is_known_no_more_is_told() {
    let peer = foreign(|_, _| Say::Error(-32001, "Task not found")).await;
    let updates = run(&peer.home(), Some(remote(RemotePlace::default()))).await;
    assert!(failure(&updates).starts_with("it does not go on with the task: Task not found."), "{updates:?}");
    assert_eq!(peer.count("SendStreamingMessage"), 0, "the work is not done twice");
}

#[tokio::test]
async fn an_answer_that_did_not_arrive_is_asked_for_again() {
    let form = json!({"artifactId": "f", "name": "UserInputMetaData", "parts": [{"data":
        {"user_input": true, "response": "Really?", "action_name": "delete", "input_fields": []}}]});
    let peer = foreign(move |method, _| match method {
        "SendStreamingMessage" => Say::Broken(1, Vec::new()),
        "SubscribeToTask" => {
            let mut waits = task("INPUT_REQUIRED");
            waits["task"]["artifacts"] = json!([form]);
            Say::Events(3, vec![waits])
        }
        _ => Say::Status(500),
    })
    .await;
    let answered = Answered { form: Form::default(), decisions: vec![Decision::Approve] };
    let resume = Resume { answered: Some(answered), ..remote(RemotePlace::default()) };
    let updates = run(&peer.home(), Some(resume)).await;
    let Some(DelegateUpdate::Asks { form }) = updates.last() else { panic!("{updates:?}") };
    assert_eq!(form.description, "Really?");
    let sent = peer.asked().into_iter().find(|asked| asked.method == "SendStreamingMessage").unwrap();
    assert_eq!(sent.params["message"]["taskId"], "t");
}

#[tokio::test]
async fn a_question_that_is_given_up_is_withdrawn() {
    let peer = foreign(|_, _| Say::Result(whole("CANCELED"))).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let updates = all(peer.home().run(delegation(Some(remote(RemotePlace::default()))), cancel)).await;
    assert_eq!(updates, [DelegateUpdate::Finished { outcome: DelegationOutcome::Canceled }]);
    assert_eq!(peer.count("CancelTask"), 1);
}

#[tokio::test]
async fn an_agent_that_wants_credentials_is_stopped() {
    let peer = foreign(|method, _| match method {
        "CancelTask" => Say::Result(whole("CANCELED")),
        _ => Say::Events(1, vec![task("SUBMITTED"), status("AUTH_REQUIRED", "log in")]),
    })
    .await;
    let updates = run(&peer.home(), None).await;
    assert!(
        failure(&updates).starts_with("it needs credentials that it does not have: log in."),
        "{updates:?}"
    );
    assert_eq!(peer.count("CancelTask"), 1);
}

#[tokio::test]
async fn every_request_has_the_headers_and_none_is_repeated_to_anybody() {
    let peer = foreign(|_, _| Say::Error(-32000, "who is s3cret-token?")).await;
    let mut headers = HeaderMap::new();
    let mut token = HeaderValue::from_static("Bearer s3cret-token");
    token.set_sensitive(true);
    headers.insert("authorization", token);
    let home = home(&peer.url, headers, Duration::from_secs(20));
    let updates = run(&home, None).await;
    assert!(!format!("{updates:?}{home:?}").contains("s3cret"), "{updates:?} {home:?}");
    for asked in peer.asked() {
        assert_eq!(asked.headers["authorization"], "Bearer s3cret-token", "{}", asked.method);
    }
    let sent = &peer.asked()[1];
    let trace = sent.headers["traceparent"].to_str().unwrap();
    assert!(trace.starts_with("00-0af7651916cd43dd8448eb211c80319c-"), "{trace}");
    assert_eq!(sent.params["message"]["metadata"]["trace_id"], "0af7651916cd43dd8448eb211c80319c");
}

#[tokio::test]
async fn a_slow_listener_loses_nothing() {
    const MANY: usize = 2000;
    let peer = foreign(|_, _| {
        let many: Vec<Value> = (0..MANY).map(|number| started(&format!("tool{number}"))).collect();
        Say::Events(1, events(events(vec![task("SUBMITTED")], many), done()))
    })
    .await;
    let mut updates = peer.home().run(delegation(None), CancellationToken::new());
    let mut seen = Vec::new();
    while let Some(update) = updates.next().await {
        tokio::task::yield_now().await;
        seen.push(update.news);
    }
    let expected: Vec<String> = (0..MANY).map(|number| format!("tool{number}")).collect();
    assert_eq!(tools(&seen), expected);
    assert_eq!(answer(&seen), "3");
}
