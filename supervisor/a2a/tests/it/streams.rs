//! Streams, as raw server-sent events.

use std::time::Duration;

use caipe_a2a::model::TaskState;
use caipe_a2a::server::ServerOptions;
use serde_json::{Value, json};

use crate::agent::{Running, chunk, eventually, start, start_with, status};

/// The content type of every stream. Python's `requests` decodes a text without a charset as ISO-8859-1.
pub(crate) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// The seeds' own request: without `jsonrpc` and, in part, `kind`.
fn seed_request(text: &str) -> Value {
    json!({"id": "test", "method": "message/stream", "params": {"message": {"role": "user",
        "parts": [{"kind": "text", "text": text}], "messageId": "msg-test"}}})
}

async fn open(server: &Running, version: Option<&str>, body: &Value, last: Option<u64>) -> reqwest::Response {
    let mut request = reqwest::Client::new()
        .post(&server.url)
        .header("content-type", "application/json")
        .header("accept", "text/event-stream");
    if let Some(version) = version {
        request = request.header("a2a-version", version);
    }
    if let Some(last) = last {
        request = request.header("last-event-id", last.to_string());
    }
    request.body(body.to_string()).send().await.unwrap()
}

/// Each event's number and its answer.
fn events(text: &str) -> Vec<(Option<u64>, Value)> {
    let blocks = text.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':'));
    blocks
        .map(|block| {
            let id = block.lines().find_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap());
            let data = block.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
            (id, serde_json::from_str(data).unwrap())
        })
        .collect()
}

/// Takes the time of a status out; it must be there, in milliseconds of UTC.
fn undated(mut answer: Value) -> Value {
    if let Some(status) = answer.pointer_mut("/result/status").and_then(Value::as_object_mut) {
        let time = status.remove("timestamp").expect("a status says since when it holds");
        let time = time.as_str().unwrap();
        assert!(time.ends_with('Z') && time.rsplit('.').next().is_some_and(|rest| rest.len() == 4), "{time}");
    }
    answer
}

#[tokio::test]
async fn the_seeds_request_streams_the_task_its_chunks_and_one_final_status() {
    let server = start().await;
    let response = open(&server, None, &seed_request("count 2"), None).await;
    assert_eq!(response.headers()["content-type"], EVENT_STREAM);
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    assert_eq!(response.headers()["cache-control"], "no-cache");
    let text = response.text().await.unwrap();
    let events = events(&text);
    let expected = [
        json!({"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "submitted"},
            "history": [{"kind": "message", "role": "user", "messageId": "msg-test", "taskId": "t1",
                "contextId": "c1", "parts": [{"kind": "text", "text": "count 2"}]}]}),
        json!({"kind": "artifact-update", "taskId": "t1", "contextId": "c1", "append": false,
            "lastChunk": false, "artifact": {"artifactId": "answer", "name": "streaming_result",
                "parts": [{"kind": "text", "text": "0 "}]}}),
        json!({"kind": "artifact-update", "taskId": "t1", "contextId": "c1", "append": true,
            "lastChunk": false, "artifact": {"artifactId": "answer", "name": "streaming_result",
                "parts": [{"kind": "text", "text": "1 "}]}}),
        json!({"kind": "status-update", "taskId": "t1", "contextId": "c1", "final": true,
            "status": {"state": "completed"}}),
    ];
    assert_eq!(events.len(), expected.len(), "{text}");
    for (index, ((id, answer), expected)) in events.iter().zip(expected).enumerate() {
        assert_eq!(*id, Some(index as u64 + 1));
        assert_eq!(undated(answer.clone()), json!({"jsonrpc": "2.0", "id": "test", "result": expected}));
    }
}

#[tokio::test]
async fn the_same_stream_in_1_0() {
    let server = start().await;
    let message = json!({"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "count 1"}]});
    let body =
        json!({"jsonrpc": "2.0", "id": 9, "method": "SendStreamingMessage", "params": {"message": message}});
    let text = open(&server, Some("1.0"), &body, None).await.text().await.unwrap();
    let results: Vec<_> = events(&text).into_iter().map(|(_, answer)| answer["result"].clone()).collect();
    assert_eq!(results[0]["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    assert_eq!(results[1]["artifactUpdate"]["artifact"]["parts"], json!([{"text": "0 "}]));
    assert_eq!(results[2]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(results.len(), 3, "{text}");
}

#[tokio::test]
async fn a_stream_ends_where_the_task_waits_and_goes_on_with_the_task() {
    let server = start().await;
    let text = open(&server, None, &seed_request("ask"), None).await.text().await.unwrap();
    let (_, last) = events(&text).pop().unwrap();
    assert_eq!(
        (&last["result"]["status"]["state"], &last["result"]["final"]),
        (&json!("input-required"), &json!(true))
    );
    let mut body = seed_request("this one");
    body["params"]["message"]["taskId"] = json!("t1");
    let text = open(&server, None, &body, None).await.text().await.unwrap();
    let events = events(&text);
    let kinds: Vec<_> =
        events.iter().map(|(id, answer)| (id.unwrap(), answer["result"]["kind"].as_str().unwrap())).collect();
    assert_eq!(kinds, [(2, "task"), (3, "status-update"), (4, "status-update")], "{text}");
    assert_eq!(events[0].1["result"]["status"]["state"], "input-required");
    assert_eq!(events[2].1["result"]["status"]["state"], "completed");
}

/// What each event says of the stream's end.
fn finals(events: &[(Option<u64>, Value)], at: &str) -> Vec<Value> {
    events.iter().map(|(_, event)| event.pointer(at).cloned().unwrap_or_default()).collect()
}

#[tokio::test]
async fn in_0_3_a_wait_that_is_over_is_not_called_the_end() {
    let server = start().await;
    let text = open(&server, None, &seed_request("ask"), None).await.text().await.unwrap();
    assert_eq!(finals(&events(&text), "/result/final").last(), Some(&json!(true)), "{text}");
    let mut body = seed_request("this one");
    body["params"]["message"]["taskId"] = json!("t1");
    open(&server, None, &body, None).await.text().await.unwrap();
    let text = open(&server, None, &resubscribe("t1"), Some(1)).await.text().await.unwrap();
    let all = events(&text);
    assert_eq!(all[1].1["result"]["status"]["state"], "input-required", "{text}");
    assert_eq!(finals(&all, "/result/final")[1..], [json!(false), json!(false), json!(true)], "{text}");
    let url = format!("{}/v1/tasks/t1:subscribe", server.url.trim_end_matches('/'));
    let request = reqwest::Client::new().get(url).header("last-event-id", "1");
    let text = request.send().await.unwrap().text().await.unwrap();
    let final_flags = finals(&events(&text), "/statusUpdate/final");
    assert_eq!(final_flags[1..], [json!(false), json!(false), json!(true)], "{text}");
}

fn resubscribe(id: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 2, "method": "tasks/resubscribe", "params": {"id": id}})
}

#[tokio::test]
async fn who_subscribes_to_a_task_that_waits_follows_it_when_it_goes_on() {
    let server = start().await;
    open(&server, None, &seed_request("ask"), None).await.text().await.unwrap();
    let mut follower = open(&server, None, &resubscribe("t1"), None).await;
    let mut text = String::from_utf8(follower.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    assert!(text.contains("input-required"), "{text}");
    let mut body = seed_request("this one");
    body["params"]["message"]["taskId"] = json!("t1");
    open(&server, None, &body, None).await.text().await.unwrap();
    text.push_str(&follower.text().await.unwrap());
    let (_, last) = events(&text).pop().unwrap();
    assert_eq!(last["result"]["status"]["state"], "completed", "{text}");
}

#[tokio::test]
async fn who_was_cut_off_goes_on_without_gap_or_repeat() {
    let server = start().await;
    let whole = open(&server, None, &seed_request("count 40"), None).await.text().await.unwrap();
    let whole = events(&whole);
    for after in [1_u64, 7, 40, 41, 42, 1000] {
        let text = open(&server, None, &resubscribe("t1"), Some(after)).await.text().await.unwrap();
        let got = events(&text);
        let after = after.min(42);
        assert_eq!(got[0].1["result"]["kind"], "task");
        assert_eq!(got[0].0, Some(after), "the task is as it was where the client goes on");
        let chunks = after.saturating_sub(1).min(40);
        let seen = (0..chunks).map(|index| format!("{index} ")).collect::<Vec<_>>().concat();
        let held = &got[0].1["result"]["artifacts"][0]["parts"][0]["text"];
        assert_eq!(held.as_str().unwrap_or_default(), seen, "after {after}");
        let rest: Vec<_> = whole
            .iter()
            .filter(|(id, _)| id.unwrap() > after)
            .map(|(id, answer)| (id, &answer["result"]))
            .collect();
        let got: Vec<_> = got[1..].iter().map(|(id, answer)| (id, &answer["result"])).collect();
        assert_eq!(got, rest, "after {after}");
    }
}

#[tokio::test]
async fn a_late_subscriber_gets_the_task_and_then_what_is_new() {
    let server = start().await;
    let first = open(&server, None, &seed_request("hold"), None).await;
    eventually(|| server.worker.log("t1").is_some_and(|log| log.last_seq() == 2)).await;
    let log = server.worker.log("t1").unwrap();
    log.push(chunk(&log, 0, "a "));
    let second = open(&server, None, &resubscribe("t1"), None).await;
    log.push(chunk(&log, 1, "b "));
    log.push(status(&log, TaskState::Completed, None));
    log.close();
    let (first, second) = (first.text().await.unwrap(), second.text().await.unwrap());
    let ids = |text: &str| events(text).iter().map(|(id, _)| id.unwrap()).collect::<Vec<_>>();
    assert_eq!(ids(&first), [1, 2, 3, 4, 5]);
    assert_eq!(ids(&second), [3, 4, 5]);
    assert_eq!(events(&second)[0].1["result"]["artifacts"][0]["parts"][0]["text"], "a ");
}

#[tokio::test]
async fn a_finished_task_cannot_be_followed_for_the_first_time_in_1_0() {
    let server = start().await;
    open(&server, None, &seed_request("count 1"), None).await.text().await.unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "SubscribeToTask", "params": {"id": "t1"}});
    let text = open(&server, Some("1.0"), &body, None).await.text().await.unwrap();
    let refusal: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(refusal["error"]["code"], -32004, "{text}");
    let text = open(&server, Some("1.0"), &body, Some(2)).await.text().await.unwrap();
    assert_eq!(events(&text).len(), 2, "who was cut off gets the task and the rest: {text}");
}

#[tokio::test]
async fn a_silent_stream_says_that_it_is_alive() {
    let options = ServerOptions { keep_alive: Duration::from_millis(10), ..ServerOptions::default() };
    let server = start_with(options, |_| ()).await;
    let mut response = open(&server, None, &seed_request("hold"), None).await;
    let mut text = String::new();
    while !text.contains(": keep-alive\n\n") {
        text += std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap();
    }
    let log = server.worker.log("t1").unwrap();
    log.push(status(&log, TaskState::Failed, None));
    while let Some(chunk) = response.chunk().await.unwrap() {
        text += std::str::from_utf8(&chunk).unwrap();
    }
    assert_eq!(events(&text).len(), 3, "a stream ends with the task, closed or not: {text}");
}

#[tokio::test]
async fn a_stalled_reader_costs_nobody_anything() {
    let server = start().await;
    let stalled = open(&server, None, &seed_request("count 20000"), None).await;
    let other = open(&server, None, &resubscribe("t1"), Some(0)).await.text().await.unwrap();
    assert_eq!(events(&other).len(), 20_002);
    let stalled = stalled.text().await.unwrap();
    assert_eq!(events(&stalled).len(), 20_002, "nor does it lose anything itself");
}

#[tokio::test]
async fn a_refused_stream_is_an_event_for_clients_of_0_3_that_read_events_and_plain_json_for_others() {
    let server = start().await;
    let response = open(&server, None, &resubscribe("nope"), None).await;
    assert_eq!(response.headers()["content-type"], EVENT_STREAM);
    let text = response.text().await.unwrap();
    assert_eq!(
        events(&text),
        [(
            None,
            json!({"jsonrpc": "2.0", "id": 2,
        "error": {"code": -32001, "message": "task not found: nope"}})
        )]
    );
    let request = reqwest::Client::new().post(&server.url).header("content-type", "application/json");
    let response = request.body(resubscribe("nope").to_string()).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");

    let new = json!({"jsonrpc": "2.0", "id": 3, "method": "SubscribeToTask", "params": {"id": "nope"}});
    let response = open(&server, Some("1.0"), &new, None).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    assert!(response.text().await.unwrap().contains("-32001"));
}

#[tokio::test]
async fn every_stream_of_either_version_and_binding_names_its_charset() {
    let server = start().await;
    let old = |text: &str| json!({"message": {"role": "user", "messageId": "m", "parts": [{"text": text}]}});
    let new =
        |text: &str| json!({"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": text}]}});
    let proto =
        |text: &str| json!({"message": {"role": "ROLE_USER", "messageId": "m", "content": [{"text": text}]}});
    let call = |method: &str, params: Value| {
        let version = (!method.contains('/')).then_some("1.0");
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        (version, "", body)
    };
    let task = json!({"id": "t1"});
    let requests = [
        call("message/stream", old("count 1")),
        call("message/stream", old("hello")),
        call("tasks/resubscribe", task.clone()),
        call("tasks/resubscribe", json!({"id": "nope"})),
        call("tasks/resubscribe", json!({})),
        call("SendStreamingMessage", new("count 1")),
        call("SendStreamingMessage", new("hello")),
        call("SubscribeToTask", task),
        (Some("1.0"), "message:stream", new("count 1")),
        (Some("1.0"), "message:stream", new("hello")),
        (Some("1.0"), "tasks/t1:subscribe", json!({})),
        (None, "v1/message:stream", proto("count 1")),
        (None, "v1/message:stream", proto("hello")),
        (None, "v1/tasks/t1:subscribe", json!({})),
    ];
    for (version, path, body) in requests {
        let request = reqwest::Client::new()
            .post(format!("{}{path}", server.url))
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .header("last-event-id", "1");
        let request = version.into_iter().fold(request, |request, v| request.header("a2a-version", v));
        let response = request.body(body.to_string()).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], EVENT_STREAM, "/{path} {body}");
        let text = response.text().await.unwrap();
        assert!(text.contains("data: "), "/{path} {body}: {text}");
    }
}
