//! The HTTP+JSON binding as its clients see it: 1.0 at the base, 0.3 below `/v1`.

use caipe_a2a::server::ServerOptions;
use reqwest::Method;
use serde_json::{Value, json};

use crate::agent::{Running, eventually, start, start_with};
use crate::streams::EVENT_STREAM;

/// An answer: its status, its media type, its JSON.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) json: Value,
}

/// Sends a request; paths below `/v1` without a version, others as 1.0.
pub(crate) async fn ask(server: &Running, verb: &str, path: &str, body: Option<&str>) -> Answer {
    let version = (!path.starts_with("/v1/")).then_some("1.0");
    ask_as(server, verb, path, version, body).await
}

pub(crate) async fn ask_as(
    server: &Running,
    verb: &str,
    path: &str,
    version: Option<&str>,
    body: Option<&str>,
) -> Answer {
    let response = open(server, verb, path, version, body, None).await;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.unwrap();
    let json = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{verb} {path}: {status} {text:?}"));
    Answer { status, headers, json }
}

async fn open(
    server: &Running,
    verb: &str,
    path: &str,
    version: Option<&str>,
    body: Option<&str>,
    last: Option<u64>,
) -> reqwest::Response {
    let url = format!("{}{path}", server.url.trim_end_matches('/'));
    let mut request = reqwest::Client::new().request(verb.parse::<Method>().unwrap(), url);
    if let Some(version) = version {
        request = request.header("a2a-version", version);
    }
    if let Some(last) = last {
        request = request.header("last-event-id", last.to_string());
    }
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_owned());
    }
    request.send().await.unwrap()
}

/// The events of a stream by number.
async fn events(response: reqwest::Response) -> Vec<(u64, Value)> {
    assert_eq!(response.headers()["content-type"], EVENT_STREAM);
    let text = response.text().await.unwrap();
    let field = |block: &str, name: &str| {
        let value = block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        value.unwrap_or_else(|| panic!("no {name} in {block:?}"))
    };
    let blocks = text.split("\n\n").filter(|block| !block.is_empty());
    blocks
        .map(|block| {
            (field(block, "id: ").parse().unwrap(), serde_json::from_str(&field(block, "data: ")).unwrap())
        })
        .collect()
}

fn new(text: &str) -> String {
    json!({"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": text}]}}).to_string()
}

fn old(text: &str) -> String {
    json!({"message": {"role": "ROLE_USER", "messageId": "m", "content": [{"text": text}]},
        "configuration": {"blocking": true}})
    .to_string()
}

/// Times vary; everything else is compared whole.
fn without_times(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.remove("timestamp");
            members.values_mut().for_each(|member| *member = without_times(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_times(item.take())),
        _ => {}
    }
    value
}

#[tokio::test]
async fn a_task_of_1_0_is_sent_read_listed_and_canceled() {
    let server = start().await;
    let sent = ask(&server, "POST", "/message:send", Some(&new("count 2"))).await;
    assert_eq!((sent.status, &sent.json["task"]["id"]), (200, &json!("t1")), "{}", sent.json);
    assert_eq!(sent.json["task"]["artifacts"][0]["parts"], json!([{"text": "0 1 "}]));
    let read = ask(&server, "GET", "/tasks/t1?historyLength=0", None).await;
    assert_eq!(read.json["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(read.json.get("history").is_none(), "{}", read.json);
    let held = json!({"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hold"}]},
        "configuration": {"returnImmediately": true}});
    ask(&server, "POST", "/message:send", Some(&held.to_string())).await;
    let listed = ask(&server, "GET", "/tasks?status=TASK_STATE_WORKING&pageSize=7", None).await;
    assert_eq!((&listed.json["tasks"][0]["id"], &listed.json["pageSize"]), (&json!("t2"), &json!(7)));
    let canceled = ask(&server, "POST", "/tasks/t2:cancel", Some("{}")).await;
    assert_eq!(canceled.json["status"]["state"], "TASK_STATE_CANCELED", "{}", canceled.json);
    let again = ask(&server, "POST", "/tasks/t2:cancel", None).await;
    assert_eq!(again.status, 200, "with no body at all: {}", again.json);
    let direct = ask(&server, "POST", "/message:send", Some(&new("hello"))).await;
    assert_eq!(direct.json["message"]["parts"][0]["text"], "hello to you");
}

#[tokio::test]
async fn a_tenant_stands_before_the_same_paths() {
    let server = start().await;
    let sent = ask(&server, "POST", "/acme/message:send", Some(&new("count 1"))).await;
    assert_eq!(sent.json["task"]["id"], "t1", "{}", sent.json);
    assert_eq!(ask(&server, "GET", "/acme/tasks/t1", None).await.json["id"], "t1");
    let stream =
        open(&server, "POST", "/acme/message:stream", Some("1.0"), Some(&new("count 1")), None).await;
    assert_eq!(events(stream).await.len(), 3);
    let card = open(&server, "GET", "/.well-known/agent-card.json", None, None, None).await;
    assert_eq!(card.status(), 200);
}

#[tokio::test]
async fn the_same_task_in_0_3() {
    let server = start().await;
    let sent = ask(&server, "POST", "/v1/message:send", Some(&old("count 1"))).await;
    let message = |id: &str| {
        json!({"messageId": "m", "contextId": "c1", "taskId": id, "role": "ROLE_USER",
        "content": [{"text": "count 1"}]})
    };
    let artifact = json!({"artifactId": "answer", "name": "streaming_result", "parts": [{"text": "0 "}]});
    assert_eq!(
        without_times(sent.json),
        json!({"task": {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_COMPLETED"},
            "artifacts": [artifact], "history": [message("t1")]}})
    );
    // As Python's client of 1.0 writes it: the package's own names, and no default.
    let held = json!({"request": {"role": "ROLE_USER", "message_id": "m", "content": [{"text": "hold"}]},
        "configuration": {}});
    let held = ask(&server, "POST", "/v1/message:send", Some(&held.to_string())).await;
    assert_eq!(held.json["task"]["status"]["state"], "TASK_STATE_WORKING", "answered at once");
    let canceled = ask(&server, "POST", "/v1/tasks/t2:cancel", Some(r#"{"name": "tasks/t2"}"#)).await;
    assert_eq!(canceled.json["status"]["state"], "TASK_STATE_CANCELLED", "{}", canceled.json);
    let listed = ask(&server, "GET", "/v1/tasks?status=TASK_STATE_CANCELLED", None).await;
    assert_eq!((&listed.json["tasks"][0]["id"], &listed.json["totalSize"]), (&json!("t2"), &json!(1)));
    let read = ask(&server, "GET", "/v1/tasks/t1?historyLength=1", None).await;
    assert_eq!(read.json["history"].as_array().map(Vec::len), Some(1));
    let direct = ask(&server, "POST", "/v1/message:send", Some(&old("hello"))).await;
    assert_eq!(direct.json["message"]["content"][0]["text"], "hello to you", "{}", direct.json);
}

#[tokio::test]
async fn streams_are_bare_events_in_each_version() {
    let server = start().await;
    let stream = open(&server, "POST", "/message:stream", Some("1.0"), Some(&new("count 1")), None).await;
    let got = events(stream).await;
    assert_eq!(got.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(got[0].1["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    assert_eq!(got[1].1["artifactUpdate"]["artifact"]["parts"], json!([{"text": "0 "}]));
    assert_eq!(got[2].1["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    let stream = open(&server, "POST", "/v1/message:stream", None, Some(&old("count 1")), None).await;
    let got = events(stream).await;
    assert_eq!(got[0].1["task"]["history"][0]["content"], json!([{"text": "count 1"}]));
    let artifact = json!({"artifactId": "answer", "name": "streaming_result", "parts": [{"text": "0 "}]});
    assert_eq!(
        got[1].1,
        json!({"artifactUpdate": {"taskId": "t2", "contextId": "c2", "artifact": artifact, "append": false,
            "lastChunk": false}})
    );
    assert_eq!(
        without_times(got[2].1.clone()),
        json!({"statusUpdate": {"taskId": "t2", "contextId": "c2", "final": true,
            "status": {"state": "TASK_STATE_COMPLETED"}}})
    );
}

#[tokio::test]
async fn who_was_cut_off_goes_on_by_either_verb_and_in_either_version() {
    let server = start().await;
    let whole = open(&server, "POST", "/message:stream", Some("1.0"), Some(&new("count 9")), None).await;
    assert_eq!(events(whole).await.len(), 11);
    for (verb, path, version) in [
        ("GET", "/tasks/t1:subscribe", Some("1.0")),
        ("POST", "/tasks/t1:subscribe", Some("1.0")),
        ("GET", "/v1/tasks/t1:subscribe", None),
        ("POST", "/v1/tasks/t1:subscribe", Some("0.3")),
    ] {
        let got = events(open(&server, verb, path, version, None, Some(4)).await).await;
        assert_eq!(got.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [4, 5, 6, 7, 8, 9, 10, 11], "{path}");
        assert_eq!(got[0].1["task"]["artifacts"][0]["parts"][0]["text"], "0 1 2 ", "{path}");
    }
}

#[tokio::test]
async fn a_message_alone_is_a_stream_of_one_event() {
    let server = start().await;
    for (path, version, body, parts) in [
        ("/message:stream", Some("1.0"), new("hello"), "parts"),
        ("/v1/message:stream", None, old("hello"), "content"),
    ] {
        let text = open(&server, "POST", path, version, Some(&body), None).await.text().await.unwrap();
        let data: Value = serde_json::from_str(text.trim().strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["message"][parts][0]["text"], "hello to you", "{text}");
    }
}

#[tokio::test]
async fn the_answer_is_of_the_media_type_that_the_client_names() {
    let server = start().await;
    let http = reqwest::Client::new();
    for (accept, expected) in [
        ("application/json", "application/json"),
        ("application/a2a+json, application/json", "application/a2a+json"),
    ] {
        let url = format!("{}tasks", server.url);
        let response = http.get(url).header("a2a-version", "1.0").header("accept", accept);
        assert_eq!(response.send().await.unwrap().headers()["content-type"], expected);
    }
    let request = http.post(format!("{}message:send", server.url)).header("a2a-version", "1.0");
    let request = request.header("content-type", "application/a2a+json").body(new("hello"));
    let response = request.send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"application/a2a+json".parse().unwrap())
    );
}

#[tokio::test]
async fn the_extended_card_is_in_the_client_s_version() {
    let options = ServerOptions::default();
    let server = start_with(options, |card| card.capabilities.extended_agent_card = true).await;
    for (path, version, old) in [("/extendedAgentCard", "1.0", false), ("/v1/card", "0.3", true)] {
        let url = format!("{}{path}", server.url.trim_end_matches('/'));
        let request = reqwest::Client::new().get(url).header("a2a-version", version);
        let card: Value = request.header("x-caller", "ann").send().await.unwrap().json().await.unwrap();
        assert_eq!((&card["description"], card.get("url").is_some()), (&json!("For ann"), old), "{card}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_nothing() {
    let server = start().await;
    drop(open(&server, "POST", "/message:stream", Some("1.0"), Some(&new("count 50")), None).await);
    eventually(|| server.worker.log("t1").is_some_and(|log| log.is_closed())).await;
    let read = ask(&server, "GET", "/tasks/t1", None).await;
    assert_eq!(read.json["status"]["state"], "TASK_STATE_COMPLETED");
}

/// A client that appends a path to a URL with a trailing slash sends two slashes.
#[tokio::test]
async fn several_slashes_before_a_path_are_one() {
    let server = start().await;
    let base = server.url.trim_end_matches('/');
    let http = reqwest::Client::new();
    let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t1"}}).to_string();
    for (verb, path, version, body, member) in [
        ("POST", "//message:send", Some("1.0"), Some(new("count 1")), "/task/id"),
        ("POST", "//v1/message:send", None, Some(old("count 1")), "/task/id"),
        ("POST", "//acme/message:send", Some("1.0"), Some(new("count 1")), "/task/id"),
        ("GET", "//tasks?pageSize=7", Some("1.0"), None, "/pageSize"),
        ("GET", "///tasks/t1", Some("1.0"), None, "/id"),
        ("GET", "//v1/tasks/t1", None, None, "/id"),
        ("POST", "//tasks/nope:cancel", Some("1.0"), None, "/error/code"),
        ("GET", "//.well-known/agent-card.json", None, None, "/url"),
        ("GET", "//.well-known/agent.json", None, None, "/url"),
        ("POST", "//", None, Some(rpc.clone()), "/result/id"),
        ("POST", "//?A2A-Version=0.3", None, Some(rpc.clone()), "/result/id"),
    ] {
        let request = http.request(verb.parse().unwrap(), format!("{base}{path}"));
        let request = version.into_iter().fold(request, |request, v| request.header("a2a-version", v));
        let request = body
            .into_iter()
            .fold(request, |request, body| request.header("content-type", "application/json").body(body));
        let text = request.send().await.unwrap().text().await.unwrap();
        let json: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{verb} {path}: {text:?}"));
        assert!(json.pointer(member).is_some(), "{verb} {path}: {json}");
    }
    for (path, version, body) in
        [("//message:stream", Some("1.0"), new("count 1")), ("//v1/message:stream", None, old("count 1"))]
    {
        let stream = open(&server, "POST", path, version, Some(&body), None).await;
        assert_eq!(events(stream).await.len(), 3, "{path}");
    }
    assert_eq!(http.get(format!("{base}//nothing")).send().await.unwrap().status(), 404);
    assert_eq!(http.get(format!("{base}/tasks//t1")).send().await.unwrap().status(), 404);
}
