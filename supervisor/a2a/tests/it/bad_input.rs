//! Invalid input gets a clear error, and the server continues.

use caipe_a2a::server::ServerOptions;
use serde_json::{Value, json};

use crate::agent::{Running, start, start_with};

async fn post(server: &Running, version: Option<&str>, body: impl Into<String>) -> (u16, Value) {
    let mut request = reqwest::Client::new().post(&server.url).header("content-type", "application/json");
    if let Some(version) = version {
        request = request.header("a2a-version", version);
    }
    let response = request.body(body.into()).send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

/// A body, and the code, text and id of its refusal.
type Envelope = (&'static str, i64, &'static str, &'static str);

const ENVELOPES: &[Envelope] = &[
    ("{this is not", -32700, "parse", "null"),
    ("", -32700, "parse", "null"),
    (r#"{"id": 1, "method""#, -32700, "parse", "null"),
    ("[1]", -32600, "batches are not supported", "null"),
    ("[1", -32700, "parse", "null"),
    ("42", -32600, "must be an object", "null"),
    (r#""SendMessage""#, -32600, "must be an object", "null"),
    (r#"{"jsonrpc": "2.0", "id": "x"}"#, -32600, "method is required", r#""x""#),
    (r#"{"id": 1, "method": 5}"#, -32600, "method must be a string", "1"),
    (r#"{"id": {}, "method": "tasks/get"}"#, -32600, "id must be", "null"),
    (r#"{"id": true, "method": "tasks/get"}"#, -32600, "id must be", "null"),
    (r#"{"id": 1, "id": 2, "method": "tasks/get"}"#, -32600, "duplicate", "null"),
    (r#"{"jsonrpc": "1.0", "id": 1, "method": "tasks/get"}"#, -32600, r#"jsonrpc must be "2.0""#, "1"),
    (r#"{"jsonrpc": null, "id": 1, "method": "tasks/get"}"#, -32600, "jsonrpc must be", "1"),
    (r#"{"jsonrpc": 2.0, "id": 1, "method": "tasks/get"}"#, -32600, "jsonrpc must be", "1"),
];

/// A method and its parameters, and the code and text of its refusal.
type Call = (&'static str, &'static str, i64, &'static str);

const HI: &str = r#"{"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hi"}]}"#;

const OLD_CALLS: &[Call] = &[
    ("message/send", "{}", -32602, "message: is required"),
    ("message/send", "[]", -32602, "params: must be an object"),
    ("message/send", r#"{"message": "hi"}"#, -32602, "message: "),
    ("tasks/get", "{}", -32602, "id: is required"),
    ("tasks/get", r#"{"id": 5}"#, -32602, "id: "),
    ("tasks/get", r#"{"id": "t", "historyLength": -1}"#, -32602, "historyLength: "),
    ("tasks/cancel", r#"{"id": ""}"#, -32602, "id: is required"),
    ("tasks/get", r#"{"id": "nope"}"#, -32001, "nope"),
    ("tasks/cancel", r#"{"id": "nope"}"#, -32001, "nope"),
    ("tasks/resubscribe", r#"{"id": "nope"}"#, -32001, "nope"),
    ("tasks/list", "{}", -32601, "tasks/list"),
    ("tasks/pushNotificationConfig/set", "{}", -32003, "push"),
    ("agent/getAuthenticatedExtendedCard", "{}", -32007, "extended"),
    // Methods of 1.0 from a client that does not say that it speaks it.
    ("GetTask", r#"{"id": "t"}"#, -32009, "send A2A-Version: 1.0"),
];

const NEW_CALLS: &[Call] = &[
    ("ListTasks", r#"{"pageSize": 101}"#, -32602, "pageSize: must be between"),
    ("ListTasks", r#"{"pageSize": 0}"#, -32602, "pageSize: must be between"),
    ("ListTasks", r#"{"status": "working"}"#, -32602, "status: must be a task state"),
    ("ListTasks", r#"{"statusTimestampAfter": "yesterday"}"#, -32602, "statusTimestampAfter: not a time"),
    ("GetTask", r#"{"id": "nope"}"#, -32001, "nope"),
    ("CancelTask", r#"{"id": "nope"}"#, -32001, "nope"),
    ("SubscribeToTask", r#"{"id": "nope"}"#, -32001, "nope"),
    ("CreateTaskPushNotificationConfig", "{}", -32003, "push"),
    ("GetExtendedAgentCard", "{}", -32004, "extended"),
    ("Frobnicate", "{}", -32601, "Frobnicate"),
    ("tasks/get", r#"{"id": "t"}"#, -32601, "a method of 0.3"),
];

/// An invalid message, and the field in the error.
type BadMessage = (&'static str, &'static str);

const OLD_MESSAGES: &[BadMessage] = &[
    (r#"{"role": "user", "parts": [{"text": "hi"}]}"#, "message.messageId: is required"),
    (r#"{"messageId": "m", "parts": [{"text": "hi"}]}"#, "message.role: a request must come from the user"),
    (r#"{"role": "boss", "messageId": "m", "parts": [{"text": "hi"}]}"#, "message.role: unknown"),
    (r#"{"role": "agent", "messageId": "m", "parts": [{"text": "hi"}]}"#, "message.role: a request"),
    (r#"{"role": "user", "messageId": "m"}"#, "message.parts: at least one"),
    (r#"{"role": "user", "messageId": "m", "parts": []}"#, "message.parts: at least one"),
    (r#"{"role": "user", "messageId": "m", "parts": [{"text": 5}]}"#, "message.parts[0]"),
    (
        r#"{"role": "user", "messageId": "m", "parts": [{"kind": "video"}]}"#,
        "message.parts[0]: exactly one of",
    ),
    (
        r#"{"role": "user", "messageId": "m", "parts": [{"text": "a", "data": {}}]}"#,
        "message.parts[0]: exactly",
    ),
    (r#"{"kind": "task", "role": "user", "messageId": "m", "parts": []}"#, "message.kind: unknown"),
];

const NEW_MESSAGES: &[BadMessage] = &[
    (r#"{"role": "ROLE_USER", "parts": [{"text": "a"}]}"#, "message.messageId: is required"),
    (r#"{"role": "user", "messageId": "m", "parts": [{"text": "a"}]}"#, "message.role: unknown"),
    (
        r#"{"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "a"}, {"text": "a", "url": "b"}]}"#,
        "message.parts[1]: exactly one of",
    ),
    (r#"{"role": "ROLE_USER", "messageId": "m", "parts": [{}]}"#, "message.parts[0]: exactly one of"),
];

fn call(method: &str, params: &Value) -> String {
    raw_call(method, &params.to_string())
}

fn raw_call(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc": "2.0", "id": 7, "method": "{method}", "params": {params}}}"#)
}

/// Version, body, code, text, id.
type Case = (Option<&'static str>, String, i64, &'static str, &'static str);

fn cases() -> Vec<Case> {
    let envelope = |(body, code, says, id): &Envelope| (None, (*body).to_owned(), *code, *says, *id);
    let calls = |version, calls: &'static [Call]| {
        calls
            .iter()
            .map(move |(method, params, code, says)| (version, raw_call(method, params), *code, *says, "7"))
    };
    let messages = |version, method: &'static str, messages: &'static [BadMessage]| {
        let params = |message: &str| format!(r#"{{"message": {message}}}"#);
        messages
            .iter()
            .map(move |(message, says)| (version, raw_call(method, &params(message)), -32602, *says, "7"))
    };
    ENVELOPES
        .iter()
        .map(envelope)
        .chain(calls(None, OLD_CALLS))
        .chain(calls(Some("1.0"), NEW_CALLS))
        .chain(messages(None, "message/send", OLD_MESSAGES))
        .chain(messages(None, "message/stream", OLD_MESSAGES))
        .chain(messages(Some("1.0"), "SendMessage", NEW_MESSAGES))
        .chain(messages(Some("1.0"), "SendStreamingMessage", NEW_MESSAGES))
        .chain(odd_cases())
        .collect()
}

fn odd_cases() -> [Case; 7] {
    let new = Some("1.0");
    let long_id = format!(r#"{{"id": "{}", "method": "tasks/get"}}"#, "x".repeat(2000));
    let deep = format!(r#"{{"metadata": {}1{}}}"#, r#"{"a":"#.repeat(5000), "}".repeat(5000));
    let lost = r#"{"role": "ROLE_USER", "messageId": "m", "taskId": "nope", "parts": [{"text": "hi"}]}"#;
    let push = r#"{"taskPushNotificationConfig": {"url": "http://x"}}"#;
    let push = raw_call("SendMessage", &format!(r#"{{"message": {HI}, "configuration": {push}}}"#));
    [
        (None, long_id, -32600, "id is longer", "null"),
        (
            None,
            raw_call("message/send", &deep),
            -32602,
            "params: is nested 5001 levels deep; at most 64 are allowed",
            "7",
        ),
        (None, r#"{"id": 7, "method": "message/send"}"#.to_owned(), -32602, "message: is required", "7"),
        (new, r#"{"id": 7, "method": "GetTask"}"#.to_owned(), -32600, "jsonrpc must be", "7"),
        (Some("99.0"), raw_call("SendMessage", "{}"), -32009, "99.0", "7"),
        (new, raw_call("SendMessage", &format!(r#"{{"message": {lost}}}"#)), -32001, "nope", "7"),
        (new, push, -32003, "push", "7"),
    ]
}

#[tokio::test]
async fn every_fault_has_its_code_its_place_and_its_id() {
    let server = start().await;
    for (version, body, code, says, id) in cases() {
        let shown: String = body.chars().take(120).collect();
        let (status, answer) = post(&server, version, body).await;
        assert_eq!(status, 200, "{shown}: {answer}");
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
        assert_eq!(answer["id"].to_string(), id, "{shown}: {answer}");
        assert_eq!(answer["jsonrpc"], "2.0", "{shown}");
        assert!(answer.get("result").is_none(), "{shown}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(says), "{shown}: {message:?} lacks {says:?}");
    }
    let (_, answer) = post(&server, Some("1.0"), call("ListTasks", &json!({}))).await;
    assert_eq!(answer["result"]["tasks"], json!([]), "no fault began a task");
}

#[tokio::test]
async fn errors_of_1_0_have_structured_details_and_those_of_0_3_none() {
    let server = start().await;
    let (_, answer) = post(&server, Some("1.0"), call("GetTask", &json!({"id": "x"}))).await;
    assert_eq!(
        answer["error"]["data"],
        json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org", "metadata": {"taskId": "x"}}])
    );
    let (_, answer) = post(&server, Some("1.0"), call("GetTask", &json!({}))).await;
    assert_eq!(
        answer["error"]["data"][1],
        json!({"@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": "id", "description": "is required"}]})
    );
    let (_, answer) = post(&server, None, call("tasks/get", &json!({"id": "x"}))).await;
    assert_eq!(answer["error"], json!({"code": -32001, "message": "task not found: x"}));
}

#[tokio::test]
async fn a_body_of_20_mb_is_refused_with_the_limit() {
    let server = start().await;
    let (status, answer) = post(&server, None, "x".repeat(20 * 1024 * 1024)).await;
    assert_eq!(status, 413);
    assert_eq!(answer["error"]["code"], -32600);
    assert!(answer["error"]["message"].as_str().unwrap().contains("10485760 bytes"), "{answer}");
    let (_, answer) = post(&server, None, call("tasks/get", &json!({"id": "x"}))).await;
    assert_eq!(answer["error"]["code"], -32001, "the server goes on");
}

/// A message of 800,000 parts is a body of 9 MB. Decoded, it took 4.1 GB.
#[tokio::test]
async fn a_message_with_too_many_parts_is_refused_with_both_numbers() {
    let server = start().await;
    for (version, method, role) in [(None, "message/send", "user"), (Some("1.0"), "SendMessage", "ROLE_USER")]
    {
        for (parts, says) in [
            (1001, "message.parts: has 1001 parts; at most 1000 are allowed"),
            (800_000, "params: has 1600005 JSON values; at most 20000 are allowed"),
        ] {
            let parts = vec![r#"{"text":""}"#; parts].join(",");
            let message = format!(r#"{{"message":{{"messageId":"m","role":"{role}","parts":[{parts}]}}}}"#);
            let (status, answer) = post(&server, version, raw_call(method, &message)).await;
            assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32602)), "{method}: {answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(says), "{method}: {message:?} lacks {says:?}");
        }
    }
}

#[tokio::test]
async fn a_long_body_is_refused_for_now_while_others_hold_the_budget() {
    let options = ServerOptions { total_body_limit: 100_000, ..ServerOptions::default() };
    let server = start_with(options, |_| ()).await;
    let request = reqwest::Client::new().post(&server.url).header("content-type", "application/json");
    let response = request.body("x".repeat(200_000)).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (503, &"1".parse().unwrap())
    );
    let answer: Value = response.json().await.unwrap();
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("already hold 100000 bytes; send it again"), "{message}");
    let (_, answer) = post(&server, None, call("tasks/get", &json!({"id": "x"}))).await;
    assert_eq!(answer["error"]["code"], -32001, "a short request needs no budget");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_given_up() {
    let options =
        ServerOptions { body_timeout: std::time::Duration::from_millis(50), ..ServerOptions::default() };
    let server = start_with(options, |_| ()).await;
    let stalled = futures::stream::pending::<Result<&[u8], std::io::Error>>();
    let request = reqwest::Client::new().post(&server.url).header("content-type", "application/json");
    let response = request.body(reqwest::Body::wrap_stream(stalled)).send().await.unwrap();
    assert_eq!(response.status(), 408);
}

#[tokio::test]
async fn another_content_type_is_refused() {
    let server = start().await;
    let http = reqwest::Client::new();
    let body = call("tasks/get", &json!({"id": "x"}));
    for (content_type, status, code) in [
        ("text/plain", 415, -32005),
        ("application/x-www-form-urlencoded", 415, -32005),
        ("application/json; charset=utf-8", 200, -32001),
        ("Application/JSON", 200, -32001),
        ("application/a2a+json", 200, -32001),
    ] {
        let request = http.post(&server.url).header("content-type", content_type).body(body.clone());
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{content_type}");
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["error"]["code"], code, "{content_type}: {answer}");
    }
}

#[tokio::test]
async fn strictness_refuses_what_caipe_clients_leave_out() {
    let options = ServerOptions { strict_v0_3: true, ..ServerOptions::default() };
    let server = start_with(options, |_| ()).await;
    let bare = json!({"role": "user", "messageId": "m", "parts": [{"text": "hi"}]});
    let body = json!({"id": 1, "method": "message/send", "params": {"message": bare}}).to_string();
    let (_, answer) = post(&server, None, body).await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    let (_, answer) = post(&server, None, call("message/send", &json!({"message": bare}))).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("message.kind: is required; message.parts[0].kind: is required"), "{message}");
    let whole = json!({"kind": "message", "role": "user", "messageId": "m",
        "parts": [{"kind": "text", "text": "hi"}]});
    let (_, answer) = post(&server, None, call("message/send", &json!({"message": whole}))).await;
    assert_eq!(answer["result"]["status"]["state"], "completed", "{answer}");
}

#[tokio::test]
async fn an_agent_that_panics_is_an_internal_error() {
    let server = start().await;
    let message = json!({"role": "user", "messageId": "m", "parts": [{"text": "panic"}]});
    let (status, answer) = post(&server, None, call("message/send", &json!({"message": message}))).await;
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32603)));
    assert!(!answer.to_string().contains("as asked"), "the panic's text stays inside: {answer}");
}

#[tokio::test]
async fn an_agent_without_streaming_says_so() {
    let server = start_with(ServerOptions::default(), |card| card.capabilities.streaming = false).await;
    let message = json!({"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hi"}]});
    let body = call("SendStreamingMessage", &json!({"message": message}));
    let (_, answer) = post(&server, Some("1.0"), body).await;
    assert_eq!(answer["error"]["code"], -32004, "{answer}");
}
