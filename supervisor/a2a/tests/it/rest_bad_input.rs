//! Whatever comes in over HTTP+JSON, a clear answer goes out in the binding's form.

use caipe_a2a::server::ServerOptions;
use serde_json::{Value, json};

use crate::agent::{start, start_with};
use crate::rest::{Answer, ask, ask_as};

/// A request below the base, then the status, reason and text of its refusal.
type Case = (&'static str, &'static str, Option<&'static str>, u16, &'static str, &'static str);

const LOST: &str =
    r#"{"message": {"role": "ROLE_USER", "messageId": "m", "taskId": "nope", "parts": [{"text": "hi"}]}}"#;
const PUSHES: &str = "/tasks/t/pushNotificationConfigs";

const NEW: &[Case] = &[
    ("POST", "/message:send", Some("{this is not"), 400, "PARSE_ERROR", "parse"),
    ("POST", "/message:send", Some(""), 400, "PARSE_ERROR", "parse"),
    ("POST", "/message:send", None, 400, "PARSE_ERROR", "parse"),
    ("POST", "/message:send", Some("[1]"), 400, "INVALID_PARAMS", "body: must be an object"),
    ("POST", "/message:send", Some("{}"), 400, "INVALID_PARAMS", "message: is required"),
    ("POST", "/message:send", Some(r#"{"message": "hi"}"#), 400, "INVALID_PARAMS", "message: "),
    ("POST", "/message:send", Some(LOST), 404, "TASK_NOT_FOUND", "nope"),
    ("POST", "/message:stream", Some("{}"), 400, "INVALID_PARAMS", "message: is required"),
    ("POST", "/message:stream", Some(LOST), 404, "TASK_NOT_FOUND", "nope"),
    ("GET", "/tasks/nope", None, 404, "TASK_NOT_FOUND", "nope"),
    ("GET", "/tasks/a%2Fb%20c", None, 404, "TASK_NOT_FOUND", "a/b c"),
    ("GET", "/tasks/%FF", None, 400, "INVALID_PARAMS", "UTF-8"),
    ("GET", "/tasks/t?historyLength=-1", None, 400, "INVALID_PARAMS", "historyLength: "),
    ("GET", "/tasks/t?historyLength=many", None, 400, "INVALID_PARAMS", "historyLength: "),
    ("GET", "/tasks?pageSize=101", None, 400, "INVALID_PARAMS", "pageSize: must be between"),
    ("GET", "/tasks?pageSize=0", None, 400, "INVALID_PARAMS", "pageSize: must be between"),
    ("GET", "/tasks?status=working", None, 400, "INVALID_PARAMS", "status: must be a task state"),
    ("GET", "/tasks?statusTimestampAfter=noon", None, 400, "INVALID_PARAMS", "statusTimestampAfter: not"),
    ("GET", "/tasks?includeArtifacts=maybe", None, 400, "INVALID_PARAMS", "includeArtifacts: "),
    ("POST", "/tasks/nope:cancel", None, 404, "TASK_NOT_FOUND", "nope"),
    ("POST", "/tasks/nope:cancel", Some("[]"), 400, "INVALID_PARAMS", "body: must be an object"),
    ("POST", "/tasks/nope:cancel", Some("{"), 400, "PARSE_ERROR", "parse"),
    ("GET", "/tasks/nope:subscribe", None, 404, "TASK_NOT_FOUND", "nope"),
    ("POST", PUSHES, Some("{}"), 400, "INVALID_PARAMS", "url: is required"),
    ("POST", PUSHES, Some(r#"{"url": "http://x"}"#), 400, "PUSH_NOTIFICATION_NOT_SUPPORTED", "push"),
    ("GET", PUSHES, None, 400, "PUSH_NOTIFICATION_NOT_SUPPORTED", "push"),
    ("GET", "/tasks/t/pushNotificationConfigs?pageSize=-1", None, 400, "INVALID_PARAMS", "pageSize: "),
    ("GET", "/tasks/t/pushNotificationConfigs/c", None, 400, "PUSH_NOTIFICATION_NOT_SUPPORTED", "push"),
    ("DELETE", "/tasks/t/pushNotificationConfigs/c", None, 400, "PUSH_NOTIFICATION_NOT_SUPPORTED", "push"),
    ("GET", "/extendedAgentCard", None, 400, "UNSUPPORTED_OPERATION", "extended"),
    ("GET", "/message:send", None, 405, "METHOD_NOT_FOUND", "takes POST"),
    ("PUT", "/tasks/t:subscribe", None, 405, "METHOD_NOT_FOUND", "takes GET, POST"),
    ("GET", "/tasks/t/artifacts", None, 404, "METHOD_NOT_FOUND", "/tasks/t/artifacts"),
    ("GET", "/tasks/", None, 404, "METHOD_NOT_FOUND", "/tasks/"),
    ("GET", "/acme/tasks/nope", None, 404, "TASK_NOT_FOUND", "nope"),
];

#[tokio::test]
async fn every_fault_of_1_0_has_its_status_its_reason_and_its_place() {
    let server = start().await;
    for (verb, path, body, status, reason, says) in NEW {
        let Answer { status: got, json, .. } = ask(&server, verb, path, *body).await;
        assert_eq!(
            (got, &json["error"]["code"]),
            (*status, &json!(status)),
            "{verb} {path} {body:?}: {json}"
        );
        assert_eq!(json["error"]["details"][0]["reason"], *reason, "{verb} {path} {body:?}: {json}");
        let message = json["error"]["message"].as_str().unwrap();
        assert!(message.contains(says), "{verb} {path} {body:?}: {message:?} lacks {says:?}");
    }
    assert_eq!(ask(&server, "GET", "/tasks", None).await.json["tasks"], json!([]), "no fault began a task");
}

/// A request below the base, then the status, code and text of its refusal.
type OldCase = (&'static str, &'static str, Option<&'static str>, u16, i64, &'static str);

const TAGGED: &str = r#"{"message": {"kind": "message", "role": "user", "messageId": "m", "parts": []}}"#;
const EMPTY: &str = r#"{"message": {"role": "ROLE_USER", "messageId": "m", "content": []}}"#;
const NO_ID: &str = r#"{"message": {"role": "ROLE_USER", "content": [{"text": "hi"}]}}"#;
const TWO: &str = r#"{"message": {"role": "ROLE_USER", "messageId": "m",
    "content": [{"text": "a"}, {"text": "b", "data": {"data": {}}}]}}"#;
const BARE_DATA: &str = r#"{"message": {"role": "ROLE_USER", "messageId": "m", "content": [{"data": 5}]}}"#;

const OLD: &[OldCase] = &[
    ("POST", "/v1/message:send", Some("{"), 400, -32700, "parse"),
    ("POST", "/v1/message:send", Some("7"), 400, -32602, "body: must be an object"),
    ("POST", "/v1/message:send", Some("{}"), 400, -32602, "message: is required"),
    ("POST", "/v1/message:send", Some(TAGGED), 400, -32602, "message.role: unknown variant `user`"),
    ("POST", "/v1/message:send", Some(EMPTY), 400, -32602, "message.content: at least one part"),
    ("POST", "/v1/message:stream", Some(NO_ID), 400, -32602, "message.messageId: is required"),
    ("POST", "/v1/message:stream", Some(TWO), 400, -32602, "message.content[1]: exactly one"),
    ("POST", "/v1/message:stream", Some(BARE_DATA), 400, -32602, "message.content[0]"),
    ("GET", "/v1/tasks/nope", None, 404, -32001, "nope"),
    ("GET", "/v1/tasks/t?historyLength=x", None, 400, -32602, "historyLength: "),
    ("GET", "/v1/tasks?pageSize=0", None, 400, -32602, "pageSize: "),
    ("POST", "/v1/tasks/nope:cancel", None, 404, -32001, "nope"),
    ("GET", "/v1/tasks/nope:subscribe", None, 404, -32001, "nope"),
    ("POST", "/v1/tasks/t/pushNotificationConfigs", Some("{}"), 400, -32602, "pushNotificationConfig: is"),
    ("GET", "/v1/tasks/t/pushNotificationConfigs", None, 400, -32003, "push"),
    ("GET", "/v1/tasks/t/pushNotificationConfigs/c", None, 400, -32003, "push"),
    ("DELETE", "/v1/tasks/t/pushNotificationConfigs/c", None, 400, -32003, "push"),
    ("GET", "/v1/card", None, 400, -32007, "extended"),
    ("GET", "/v1/frobnicate", None, 404, -32601, "/v1/frobnicate"),
    ("DELETE", "/v1/tasks/t", None, 405, -32601, "takes GET"),
];

#[tokio::test]
async fn every_fault_of_0_3_has_its_status_its_code_and_its_place() {
    let server = start().await;
    for (verb, path, body, status, code, says) in OLD {
        let Answer { status: got, json, .. } = ask(&server, verb, path, *body).await;
        assert_eq!((got, &json["code"]), (*status, &json!(code)), "{verb} {path} {body:?}: {json}");
        let message = json["message"].as_str().unwrap();
        assert!(message.contains(says), "{verb} {path} {body:?}: {message:?} lacks {says:?}");
    }
    assert_eq!(
        ask(&server, "GET", "/v1/tasks", None).await.json["tasks"],
        json!([]),
        "no fault began a task"
    );
}

#[tokio::test]
async fn a_message_with_too_many_parts_is_refused_with_both_numbers() {
    let server = start().await;
    for (path, member, says) in
        [("/message:send", "parts", "message.parts"), ("/v1/message:send", "content", "message.content")]
    {
        for (parts, says) in [
            (1001, format!("{says}: has 1001 parts; at most 1000 are allowed")),
            (800_000, "body: has 1600005 JSON values; at most 20000 are allowed".to_owned()),
        ] {
            let parts = vec![r#"{"text":""}"#; parts].join(",");
            let body =
                format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","{member}":[{parts}]}}}}"#);
            let Answer { status, json, .. } = ask(&server, "POST", path, Some(&body)).await;
            assert_eq!(status, 400, "{path}: {json}");
            assert!(json.to_string().contains(&says), "{path}: {json} lacks {says:?}");
        }
    }
}

#[tokio::test]
async fn a_long_body_is_refused_for_now_while_others_hold_the_budget() {
    let options = ServerOptions { total_body_limit: 100_000, ..ServerOptions::default() };
    let server = start_with(options, |_| ()).await;
    let answer = ask(&server, "POST", "/message:send", Some(&"x".repeat(200_000))).await;
    assert_eq!((answer.status, &answer.headers["retry-after"]), (503, &"1".parse().unwrap()));
    assert_eq!(answer.json["error"]["status"], "UNAVAILABLE", "{}", answer.json);
}

#[tokio::test]
async fn a_path_belongs_to_one_version() {
    let server = start().await;
    for (path, version, status) in [
        ("/tasks", None, 400),
        ("/tasks", Some("0.3"), 400),
        ("/tasks", Some("99.0"), 400),
        ("/tasks", Some("1.1"), 200),
        ("/tasks?A2A-Version=1.0", None, 200),
        ("/v1/tasks", None, 200),
        ("/v1/tasks", Some("0.3"), 200),
        ("/v1/tasks", Some("1.0"), 400),
    ] {
        let answer = ask_as(&server, "GET", path, version, None).await;
        assert_eq!(answer.status, status, "{path} {version:?}: {}", answer.json);
    }
    let refused = ask_as(&server, "GET", "/tasks", None, None).await.json;
    assert_eq!(refused["error"]["details"][0]["reason"], "VERSION_NOT_SUPPORTED", "{refused}");
    let lenient = ServerOptions { lenient_version: true, ..ServerOptions::default() };
    let server = start_with(lenient, |_| ()).await;
    assert_eq!(ask_as(&server, "GET", "/tasks", None, None).await.status, 200);
}

#[tokio::test]
async fn a_wrong_verb_gets_which_are_right() {
    let server = start().await;
    let answer = ask(&server, "DELETE", "/tasks/t/pushNotificationConfigs", None).await;
    assert_eq!((answer.status, &answer.headers["allow"]), (405, &"GET, POST".parse().unwrap()));
}

#[tokio::test]
async fn wrong_types_and_sizes_are_refused_in_the_binding_s_form() {
    let server = start().await;
    let http = reqwest::Client::new();
    for (path, content_type, body, status, code) in [
        ("message:send", "text/plain", "{}".to_owned(), 415, "/error/code"),
        ("v1/message:send", "text/plain", "{}".to_owned(), 415, "/code"),
        ("message:send", "application/json", "x".repeat(11 * 1024 * 1024), 413, "/error/code"),
    ] {
        let request = http.post(format!("{}{path}", server.url)).header("content-type", content_type);
        let request = if path.starts_with("v1") { request } else { request.header("a2a-version", "1.0") };
        let response = request.body(body).send().await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        let json: Value = response.json().await.unwrap();
        assert!(json.pointer(code).is_some_and(Value::is_i64), "{path}: {json}");
    }
    let silent = start_with(ServerOptions::default(), |card| card.capabilities.streaming = false).await;
    let body = json!({"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hi"}]}});
    let answer = ask(&silent, "POST", "/message:stream", Some(&body.to_string())).await;
    assert_eq!((answer.status, &answer.json["error"]["status"]), (400, &json!("FAILED_PRECONDITION")));
}
