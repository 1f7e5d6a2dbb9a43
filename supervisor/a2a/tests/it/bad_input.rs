//! Whatever comes in, a clear answer goes out and the server goes on.

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

struct Case {
    name: &'static str,
    version: Option<&'static str>,
    body: String,
    code: i64,
    says: &'static str,
    id: Value,
}

fn case(
    name: &'static str,
    version: Option<&'static str>,
    body: impl ToString,
    code: i64,
    says: &'static str,
    id: Value,
) -> Case {
    Case { name, version, body: body.to_string(), code, says, id }
}

fn call(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

fn envelope_cases() -> Vec<Case> {
    let nobody = Value::Null;
    vec![
        case("not JSON", None, "{this is not", -32700, "parse", nobody.clone()),
        case("empty", None, "", -32700, "parse", nobody.clone()),
        case("half", None, r#"{"id": 1, "method""#, -32700, "parse", nobody.clone()),
        case("array", None, "[1]", -32600, "batches are not supported", nobody.clone()),
        case("number", None, "42", -32600, "must be an object", nobody.clone()),
        case("string", None, r#""SendMessage""#, -32600, "must be an object", nobody.clone()),
        case("no method", None, r#"{"jsonrpc": "2.0", "id": "x"}"#, -32600, "method is required", json!("x")),
        case("method no string", None, r#"{"id": 1, "method": 5}"#, -32600, "method must be", json!(1)),
        case("object id", None, r#"{"id": {}, "method": "tasks/get"}"#, -32600, "id must be", nobody.clone()),
        case(
            "long id",
            None,
            json!({"id": "x".repeat(2000), "method": "tasks/get"}),
            -32600,
            "id is longer",
            nobody,
        ),
        case(
            "jsonrpc 1.0",
            None,
            r#"{"jsonrpc": "1.0", "id": 1, "method": "tasks/get", "params": {"id": "t"}}"#,
            -32600,
            r#"jsonrpc must be "2.0""#,
            json!(1),
        ),
        case(
            "jsonrpc null",
            None,
            r#"{"jsonrpc": null, "id": 1, "method": "tasks/get", "params": {"id": "t"}}"#,
            -32600,
            "jsonrpc must be",
            json!(1),
        ),
        case(
            "1.0 without jsonrpc",
            Some("1.0"),
            r#"{"id": 1, "method": "GetTask", "params": {"id": "t"}}"#,
            -32600,
            "jsonrpc must be",
            json!(1),
        ),
    ]
}

fn params_cases() -> Vec<Case> {
    let text = json!([{"kind": "text", "text": "hi"}]);
    let seven = json!(7);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"message/send","params":{{"metadata":{}{}}}}}"#,
        r#"{"a":"#.repeat(5000),
        "1".to_owned() + &"}".repeat(5000)
    );
    let old = |name, message: Value, says| {
        let body = call("message/send", json!({"message": message}));
        case(name, None, body, -32602, says, json!(7))
    };
    let new = |name, message: Value, says| {
        let body = call("SendMessage", json!({"message": message}));
        case(name, Some("1.0"), body, -32602, says, json!(7))
    };
    vec![
        case("no params", None, r#"{"id":7,"method":"message/send"}"#, -32602, "message: is required", seven.clone()),
        case("params array", None, call("message/send", json!([])), -32602, "params: must be", seven.clone()),
        case("message is a text", None, call("message/send", json!({"message": "hi"})), -32602, "message:", seven.clone()),
        old("no messageId", json!({"role": "user", "parts": text}), "message.messageId: is required"),
        old("no role", json!({"messageId": "m", "parts": text}), "message.role: is required"),
        old("wrong role", json!({"role": "boss", "messageId": "m", "parts": text}), "message.role: unknown"),
        old("agent's role", json!({"role": "agent", "messageId": "m", "parts": text}), "message.role: a request"),
        old("no parts", json!({"role": "user", "messageId": "m"}), "message.parts: at least one"),
        old("empty parts", json!({"role": "user", "messageId": "m", "parts": []}), "message.parts: at least"),
        old("text is a number", json!({"role": "user", "messageId": "m", "parts": [{"text": 5}]}), "message.parts[0]"),
        old("unknown part", json!({"role": "user", "messageId": "m", "parts": [{"kind": "video"}]}), "message.parts[0]: exactly one of"),
        old("wrong kind", json!({"kind": "task", "role": "user", "messageId": "m", "parts": text}), "message.kind"),
        case("deep", None, deep, -32602, "recursion limit", seven.clone()),
        new("1.0: no messageId", json!({"role": "ROLE_USER", "parts": [{"text": "a"}]}), "message.messageId: is required"),
        new("1.0: role of 0.3", json!({"role": "user", "messageId": "m", "parts": [{"text": "a"}]}), "message.role"),
        new("1.0: two contents", json!({"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "a"}, {"text": "a", "url": "b"}]}), "message.parts[1]: exactly one of"),
        new("1.0: no content", json!({"role": "ROLE_USER", "messageId": "m", "parts": [{}]}), "message.parts[0]: exactly one of"),
        case("no id", None, call("tasks/get", json!({})), -32602, "id: is required", seven.clone()),
        case("empty id", None, call("tasks/cancel", json!({"id": ""})), -32602, "id: is required", seven.clone()),
        case("negative history", None, call("tasks/get", json!({"id": "t", "historyLength": -1})), -32602, "historyLength", seven.clone()),
        case("page size", Some("1.0"), call("ListTasks", json!({"pageSize": 101})), -32602, "pageSize: must be", seven.clone()),
        case("status", Some("1.0"), call("ListTasks", json!({"status": "working"})), -32602, "status: must be", seven),
    ]
}

fn operation_cases() -> Vec<Case> {
    let seven = || json!(7);
    let hi = json!({"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hi"}]});
    let mut lost = hi.clone();
    lost["taskId"] = json!("nope");
    let push = json!({"message": hi, "configuration": {"taskPushNotificationConfig": {"url": "http://x"}}});
    vec![
        case("unknown method", Some("1.0"), call("Frobnicate", json!({})), -32601, "Frobnicate", seven()),
        case("0.3 list", None, call("tasks/list", json!({})), -32601, "tasks/list", seven()),
        case("1.0 without version", None, call("GetTask", json!({"id": "t"})), -32009, "A2A-Version: 1.0", seven()),
        case("unknown version", Some("99.0"), call("SendMessage", json!({})), -32009, "99.0", seven()),
        case("0.3 method, 1.0 version", Some("1.0"), call("tasks/get", json!({"id": "t"})), -32601, "0.3", seven()),
        case("unknown task", None, call("tasks/get", json!({"id": "nope"})), -32001, "nope", seven()),
        case("1.0: unknown task", Some("1.0"), call("GetTask", json!({"id": "nope"})), -32001, "nope", seven()),
        case("cancel unknown", Some("1.0"), call("CancelTask", json!({"id": "nope"})), -32001, "nope", seven()),
        case("follow unknown", Some("1.0"), call("SubscribeToTask", json!({"id": "nope"})), -32001, "nope", seven()),
        case("send to unknown", Some("1.0"), call("SendMessage", json!({"message": lost})), -32001, "nope", seven()),
        case("push config", Some("1.0"), call("CreateTaskPushNotificationConfig", json!({})), -32003, "push", seven()),
        case("old push config", None, call("tasks/pushNotificationConfig/set", json!({})), -32003, "push", seven()),
        case("push in a message", Some("1.0"), call("SendMessage", push), -32003, "push", seven()),
        case("extended card", Some("1.0"), call("GetExtendedAgentCard", json!({})), -32004, "extended", seven()),
        case("old extended card", None, call("agent/getAuthenticatedExtendedCard", json!({})), -32007, "extended", seven()),
    ]
}

#[tokio::test]
async fn every_fault_has_its_code_its_place_and_its_id() {
    let server = start().await;
    for case in envelope_cases().into_iter().chain(params_cases()).chain(operation_cases()) {
        let (status, answer) = post(&server, case.version, case.body).await;
        let name = case.name;
        assert_eq!(status, 200, "{name}: {answer}");
        assert_eq!(answer["error"]["code"], case.code, "{name}: {answer}");
        assert_eq!(answer["id"], case.id, "{name}: {answer}");
        assert_eq!(answer["jsonrpc"], "2.0", "{name}");
        assert!(answer.get("result").is_none(), "{name}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(case.says), "{name}: {message:?} lacks {:?}", case.says);
    }
    let (_, answer) = post(&server, Some("1.0"), call("ListTasks", json!({})).to_string()).await;
    assert_eq!(answer["result"]["tasks"], json!([]), "no fault began a task");
}

#[tokio::test]
async fn errors_of_1_0_have_structured_details_and_those_of_0_3_none() {
    let server = start().await;
    let (_, answer) = post(&server, Some("1.0"), call("GetTask", json!({"id": "x"})).to_string()).await;
    assert_eq!(
        answer["error"]["data"],
        json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org", "metadata": {"taskId": "x"}}])
    );
    let (_, answer) = post(&server, Some("1.0"), call("GetTask", json!({})).to_string()).await;
    assert_eq!(
        answer["error"]["data"][1],
        json!({"@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": "id", "description": "is required"}]})
    );
    let (_, answer) = post(&server, None, call("tasks/get", json!({"id": "x"})).to_string()).await;
    assert_eq!(answer["error"], json!({"code": -32001, "message": "task not found: x"}));
}

#[tokio::test]
async fn a_body_of_20_mb_is_refused_with_the_limit() {
    let server = start().await;
    let (status, answer) = post(&server, None, "x".repeat(20 * 1024 * 1024)).await;
    assert_eq!(status, 413);
    assert_eq!(answer["error"]["code"], -32600);
    assert!(answer["error"]["message"].as_str().unwrap().contains("10485760 bytes"), "{answer}");
    let (_, answer) = post(&server, None, call("tasks/get", json!({"id": "x"})).to_string()).await;
    assert_eq!(answer["error"]["code"], -32001, "the server goes on");
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
    let body = call("tasks/get", json!({"id": "x"})).to_string();
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
    let (_, answer) = post(&server, None, call("message/send", json!({"message": bare})).to_string()).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("message.kind: is required; message.parts[0].kind: is required"), "{message}");
    let whole = json!({"kind": "message", "role": "user", "messageId": "m",
        "parts": [{"kind": "text", "text": "hi"}]});
    let (_, answer) = post(&server, None, call("message/send", json!({"message": whole})).to_string()).await;
    assert_eq!(answer["result"]["status"]["state"], "completed", "{answer}");
}

#[tokio::test]
async fn an_agent_that_panics_is_an_internal_error() {
    let server = start().await;
    let message = json!({"role": "user", "messageId": "m", "parts": [{"text": "panic"}]});
    let (status, answer) = post(&server, None, call("message/send", json!({"message": message})).to_string()).await;
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32603)));
    assert!(!answer.to_string().contains("as asked"), "the panic's text stays inside: {answer}");
}

#[tokio::test]
async fn an_agent_without_streaming_says_so() {
    let server = start_with(ServerOptions::default(), |card| card.capabilities.streaming = false).await;
    let message = json!({"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hi"}]});
    let body = call("SendStreamingMessage", json!({"message": message})).to_string();
    let (_, answer) = post(&server, Some("1.0"), body).await;
    assert_eq!(answer["error"]["code"], -32004, "{answer}");
}
