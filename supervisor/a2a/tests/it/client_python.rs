//! What CAIPE's Python agents send, as it comes over the wire.

use caipe_a2a::ProtocolVersion::{V0_3, V1_0};
use caipe_a2a::client::{A2aClient, ClientError, ClientOptions, StreamEvent};
use caipe_a2a::model::{Content, Event, Message, Reply, Role, SendMessageRequest, TaskState};
use futures::StreamExt;
use serde_json::{Value, json};

use crate::peer::{Answer, End, Peer};

async fn stream_of(version: caipe_a2a::ProtocolVersion, body: String) -> Vec<StreamEvent> {
    let peer = Peer::start(version, move |_| Answer::stream(body.clone(), End::Close)).await;
    let client =
        A2aClient::connect(&peer.url, reqwest::Client::new(), ClientOptions::default()).await.unwrap();
    let stream = client.stream(SendMessageRequest::new(Message::user("m1", "x"))).await.unwrap();
    stream.map(Result::unwrap).collect().await
}

/// As uvicorn and sse-starlette write it.
fn frames(results: &[Value]) -> String {
    let frame = |result: &Value| {
        let answer = json!({"id": "c0ffee", "jsonrpc": "2.0", "result": result});
        format!("data: {answer}\r\n\r\n")
    };
    let ping = ": ping - 2026-11-01 10:00:00.000000+00:00\r\n\r\n";
    results.iter().map(frame).collect::<Vec<_>>().join(ping)
}

fn artifact(name: &str, text: &str, last: bool) -> Value {
    json!({"kind": "artifact-update", "taskId": "T", "contextId": "C", "lastChunk": last,
        "artifact": {"artifactId": "A", "name": name, "parts": [{"kind": "text", "text": text}]}})
}

fn status(state: &str, text: Option<&str>, is_final: bool) -> Value {
    let mut status = json!({"state": state, "timestamp": "2026-11-01T10:00:00.123456+00:00"});
    if let Some(text) = text {
        status["message"] = json!({"parts": [{"text": text}]});
    }
    json!({"kind": "status-update", "taskId": "T", "contextId": "C", "final": is_final, "status": status})
}

fn texts(events: &[StreamEvent]) -> Vec<(String, bool, bool, String)> {
    let update = |event: &StreamEvent| match &event.event {
        Event::ArtifactUpdate(update) => {
            let name = update.artifact.name.clone().unwrap_or_default();
            Some((name, update.append, update.last_chunk, update.artifact.text()))
        }
        _ => None,
    };
    events.iter().filter_map(update).collect()
}

#[tokio::test]
async fn an_agent_of_the_older_generation_is_read() {
    let events = stream_of(
        V0_3,
        frames(&[
            json!({"id": "T", "contextId": "C", "kind": "task", "status": {"state": "submitted"},
                "history": [{"kind": "message", "role": "user", "messageId": "m1", "taskId": "T", "parts": [{"text": "x"}]}]}),
            status("working", Some("🔧 Calling tool: **version_service__version**"), false),
            status("working", Some("✅ Tool **version_service__version** completed"), false),
            status("working", Some("The version is 2.13."), false),
            artifact("current_result", "", true),
            status("completed", None, true),
        ]),
    )
    .await;
    assert_eq!(events.len(), 6);
    let status_message = |at: usize| match &events[at].event {
        Event::StatusUpdate(update) => update.status.message.clone().unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(status_message(1).text(), "🔧 Calling tool: **version_service__version**");
    assert_eq!(
        (status_message(3).role, status_message(3).message_id.as_str()),
        (Role::Agent, ""),
        "left out means the agent"
    );
    assert_eq!(texts(&events), [("current_result".to_owned(), true, true, String::new())]);
    assert_eq!(events[5].event.state(), Some(TaskState::Completed));
}

#[tokio::test]
async fn an_agent_of_the_newer_generation_is_read() {
    // `append` is left out and one artifact id serves all.
    let mut whole = artifact("complete_result", "One two.", true);
    whole["append"] = json!(false);
    let events = stream_of(
        V0_3,
        frames(&[
            json!({"id": "T", "contextId": "C", "kind": "task", "status": {"state": "submitted"}, "artifacts": null, "history": null}),
            status("working", None, false),
            artifact("tool_notification_start", "🔧 Jira: Calling tool: Get_Issue\n", false),
            artifact("streaming_result", "One ", false),
            artifact("streaming_result", "two.", false),
            artifact("streaming_result", "", true),
            whole,
            status("completed", None, true),
        ]) + "\r\nsomething behind the end",
    )
    .await;
    let owned = |name: &str, append, last, text: &str| (name.to_owned(), append, last, text.to_owned());
    assert_eq!(
        texts(&events),
        [
            owned("tool_notification_start", true, false, "🔧 Jira: Calling tool: Get_Issue\n"),
            owned("streaming_result", true, false, "One "),
            owned("streaming_result", true, false, "two."),
            owned("streaming_result", true, true, ""),
            owned("complete_result", false, true, "One two."),
        ]
    );
}

#[tokio::test]
async fn a_failure_that_calls_itself_completed_gets_as_it_is() {
    let mut failed = artifact("error_result", "Jira status_message no", true);
    failed["artifact"]["metadata"] = json!({"sourceAgent": "jira", "agentType": "sub-agent"});
    let events =
        stream_of(V0_3, frames(&[failed, status("completed", Some("Jira status_message no"), true)])).await;
    assert_eq!(texts(&events)[0].0, "error_result");
    assert_eq!(events[1].event.state(), Some(TaskState::Completed));
}

#[tokio::test]
async fn what_nobody_knows_yet_stops_nothing() {
    let unknown = json!({"kind": "artifact-update", "taskId": "T", "contextId": "C", "trail": [1],
    "artifact": {"artifactId": "A", "parts": [
        {"kind": "hologram", "data": "AAAA"}, {"kind": "text", "text": "a"}, {}, {"kind": "data", "data": [1]},
    ]}});
    let events =
        stream_of(V0_3, frames(&[unknown, status("dreaming", None, false), status("completed", None, true)]))
            .await;
    let Event::ArtifactUpdate(update) = &events[0].event else { panic!("{events:?}") };
    let known: Vec<_> = update.artifact.parts.iter().map(|part| part.content != Content::Unknown).collect();
    assert_eq!(known, [false, true, false, false]);
    assert_eq!(events[1].event.state(), Some(TaskState::Unspecified));

    let newer = json!({"artifactUpdate": {"taskId": "T", "contextId": "C", "generation": 7, "artifact": {"artifactId": "A",
        "parts": [{"file": {"bytes": "AA=="}}, {"fileUrl": {"url": "https://x"}}, {"text": "a", "kind": "text"}]}}});
    let end = json!({"statusUpdate": {"taskId": "T", "status": {"state": "TASK_STATE_COMPLETED",
        "message": {"role": "ROLE_UNSPECIFIED", "parts": null}}}});
    let events = stream_of(V1_0, frames(&[newer, end])).await;
    assert_eq!(texts(&events)[0].3, "a");
    assert_eq!(events[1].event.state(), Some(TaskState::Completed));
}

#[tokio::test]
async fn an_answer_without_a_stream_is_read() {
    let task = json!({"id": "T", "contextId": "C", "status": {"state": "completed"},
        "artifacts": [{"artifactId": "A", "name": "complete_result", "parts": [{"text": "Done."}]}],
        "history": [{"role": "user", "parts": [{"kind": "text", "text": "x"}]}, {"parts": [{"kind": "text", "text": "…"}]}]});
    let peer = Peer::start(V0_3, move |_| Answer::result(&task)).await;
    let client =
        A2aClient::connect(&peer.url, reqwest::Client::new(), ClientOptions::default()).await.unwrap();
    let Reply::Task(task) = client.send(SendMessageRequest::new(Message::user("m1", "x"))).await.unwrap()
    else {
        panic!()
    };
    assert_eq!((task.artifacts[0].text(), task.history[1].role), ("Done.".to_owned(), Role::Agent));
}

#[tokio::test]
async fn errors_are_read_whatever_their_details_are() {
    let info = json!([
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org"},
        {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": "id", "description": "is empty"}]},
    ]);
    for (data, reason, violations) in [
        (json!({"taskId": "T"}), None, 0),
        (json!("a text"), None, 0),
        (Value::Null, None, 0),
        (json!([1, "x", null]), None, 0),
        (info.clone(), Some("TASK_NOT_FOUND"), 1),
        (info[0].clone(), Some("TASK_NOT_FOUND"), 0),
    ] {
        let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Task not found", "data": data}});
        let peer = Peer::start(V0_3, move |_| Answer::json(&error)).await;
        let client =
            A2aClient::connect(&peer.url, reqwest::Client::new(), ClientOptions::default()).await.unwrap();
        let ClientError::Remote(error) = client.get("T", None).await.unwrap_err() else { panic!() };
        assert_eq!(
            (error.code, error.reason(), error.violations().len()),
            (-32001, reason, violations),
            "{error:?}"
        );
        assert_eq!(error.to_string(), "Task not found (-32001)");
    }
}
