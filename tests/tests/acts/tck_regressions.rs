//! Where servers fail the official TCKs of 0.3 and 1.0. The suites themselves are not needed for this.

use anyhow::{Result, ensure};
use caipe_a2a::card::CardMode;
use caipe_tests::conformance::{self, Options, Suite, Users};
use reqwest::Method;
use serde_json::{Value, json};

/// A server for the TCKs and a client of it.
struct Server {
    running: conformance::Server,
    http: reqwest::Client,
}

/// An answer: HTTP status, media type, JSON.
struct Answer {
    status: u16,
    media_type: String,
    body: Value,
}

impl Server {
    async fn start() -> Result<Self> {
        let options = Options {
            suite: Suite::Tck,
            capabilities: true,
            users: Users::default(),
            reject_contexts: false,
            card: CardMode::V1,
            bindings: vec!["JSONRPC".to_owned()],
        };
        let running = conformance::Server::start(options, 0).await?;
        Ok(Self { running, http: reqwest::Client::builder().no_proxy().build()? })
    }

    /// Sends a request with these headers, `name: value`.
    async fn send(&self, method: Method, path: &str, headers: &[&str], body: String) -> Result<Answer> {
        let mut request = self.http.request(method, format!("{}{path}", self.running.url())).body(body);
        for (name, value) in headers.iter().filter_map(|header| header.split_once(": ")) {
            request = request.header(name, value);
        }
        let response = request.send().await?;
        let media_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let (status, media_type) = (response.status().as_u16(), media_type.unwrap_or_default().to_owned());
        let text = response.text().await?;
        Ok(Answer { status, media_type, body: serde_json::from_str(&text).unwrap_or(Value::String(text)) })
    }

    /// The answer to a JSON-RPC call, of 1.0 if the method's name has no slash.
    async fn call(&self, method: &str, params: Value) -> Result<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let json = "content-type: application/json";
        let v1 = [json, "a2a-version: 1.0"];
        let headers = if method.contains('/') { &v1[..1] } else { &v1[..] };
        Ok(self.send(Method::POST, "/", headers, body).await?.body)
    }
}

/// A message of 0.3 whose id begins with `word`.
fn old_message(word: &str) -> Value {
    let id = format!("{word}-{}", uuid::Uuid::new_v4());
    json!({"message": {"kind": "message", "role": "user", "messageId": id,
        "parts": [{"kind": "text", "text": "hello"}]}})
}

/// A message of 1.0 whose id begins with `word`.
fn message(word: &str) -> Value {
    let id = format!("{word}-{}", uuid::Uuid::new_v4());
    json!({"message": {"role": "ROLE_USER", "messageId": id, "parts": [{"text": "hello"}]}})
}

#[tokio::test]
async fn the_wrong_media_type_is_refused_in_json() -> Result<()> {
    let server = Server::start().await?;
    let answer = server.send(Method::POST, "/", &["content-type: text/plain"], "{}".to_owned()).await?;
    assert_eq!((answer.status, &answer.body["error"]["code"]), (415, &json!(-32005)));
    assert!(answer.media_type.starts_with("application/json"), "{}", answer.media_type);
    Ok(())
}

#[tokio::test]
async fn the_card_is_pure_and_can_be_cached() -> Result<()> {
    let server = Server::start().await?;
    let response = reqwest::get(format!("{}/.well-known/agent-card.json", server.running.url())).await?;
    for header in ["cache-control", "etag", "last-modified"] {
        assert!(response.headers().contains_key(header), "{header}");
    }
    let etag = response.headers().get("etag").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let same = format!("if-none-match: {etag}");
    let again = server.send(Method::GET, "/.well-known/agent-card.json", &[&same], String::new()).await?;
    assert_eq!(again.status, 304);
    let card: Value = response.json().await?;
    for member in ["url", "protocolVersion", "preferredTransport", "supportsAuthenticatedExtendedCard"] {
        assert!(card.get(member).is_none(), "{member}");
    }
    Ok(())
}

#[tokio::test]
async fn an_unknown_media_type_of_a_part_is_taken() -> Result<()> {
    let server = Server::start().await?;
    let mut params = message("tck-complete-task");
    params["message"]["parts"] = json!([{"raw": "AAAA", "mediaType": "application/x-unknown"}]);
    let answer = server.call("SendMessage", params).await?;
    assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
    Ok(())
}

#[tokio::test]
async fn bad_parameters_of_0_3_are_invalid_params() -> Result<()> {
    let server = Server::start().await?;
    let without = |member: &str| {
        let mut params = old_message("generic");
        params["message"].as_object_mut().and_then(|message| message.remove(member));
        params
    };
    let with_part = |part: Value| {
        let mut params = old_message("generic");
        params["message"]["parts"] = json!([part]);
        params
    };
    for (method, params) in [
        ("message/send", json!({})),
        ("message/send", json!({"message": "text"})),
        ("message/send", without("messageId")),
        ("message/send", without("role")),
        ("message/send", without("parts")),
        ("message/send", with_part(json!({"kind": "hologram", "text": "x"}))),
        ("message/stream", without("messageId")),
        ("tasks/get", json!({})),
        ("tasks/get", json!({"id": 5})),
        ("tasks/get", json!({"id": "x", "historyLength": -1})),
        ("tasks/cancel", json!({})),
        ("tasks/resubscribe", json!({})),
    ] {
        let answer = server.call(method, params.clone()).await?;
        assert_eq!(answer["error"]["code"], -32602, "{method} {params}: {answer}");
    }
    Ok(())
}

#[tokio::test]
async fn a_generic_message_of_0_3_leaves_a_task_to_go_on_with() -> Result<()> {
    let server = Server::start().await?;
    let task = server.call("message/send", old_message("generic")).await?["result"].take();
    assert_eq!(task["status"]["state"], "input-required", "{task}");
    let mut later = old_message("generic");
    later["message"]["taskId"] = task["id"].clone();
    later["message"]["contextId"] = task["contextId"].clone();
    let again = server.call("message/send", later).await?["result"].take();
    assert_eq!((&again["id"], &again["status"]["state"]), (&task["id"], &json!("input-required")), "{again}");
    assert_eq!(again["history"].as_array().map(Vec::len), Some(2), "{again}");
    for _ in 0..2 {
        let canceled = server.call("tasks/cancel", json!({"id": task["id"]})).await?["result"].take();
        assert_eq!(canceled["status"]["state"], "canceled", "{canceled}");
    }
    Ok(())
}

#[tokio::test]
async fn push_configs_of_0_3_are_read_without_an_id_and_removed_with_null() -> Result<()> {
    let server = Server::start().await?;
    let task = server.call("message/send", old_message("generic")).await?["result"]["id"].take();
    let prefix = "tasks/pushNotificationConfig";
    let config = json!({"url": "https://example.com/webhook", "token": "t"});
    let params = json!({"taskId": task, "pushNotificationConfig": config});
    let set = server.call(&format!("{prefix}/set"), params).await?["result"].take();
    let id = &set["pushNotificationConfig"]["id"];
    ensure!(id.is_string(), "no id: {set}");
    let got = server.call(&format!("{prefix}/get"), json!({"id": task})).await?;
    assert_eq!(&got["result"]["pushNotificationConfig"]["id"], id, "{got}");
    let listed = server.call(&format!("{prefix}/list"), json!({"id": task})).await?;
    assert_eq!(listed["result"].as_array().map(Vec::len), Some(1), "{listed}");
    let params = json!({"id": task, "pushNotificationConfigId": id});
    for _ in 0..2 {
        let removed = server.call(&format!("{prefix}/delete"), params.clone()).await?;
        assert_eq!(removed.get("result"), Some(&Value::Null), "{removed}");
    }
    Ok(())
}

#[tokio::test]
async fn rest_answers_in_the_media_type_of_the_request() -> Result<()> {
    let server = Server::start().await?;
    for media_type in ["application/json", "application/a2a+json"] {
        let header = format!("content-type: {media_type}");
        let headers = [&*header, "a2a-version: 1.0"];
        let body = message("tck-complete-task").to_string();
        let answer = server.send(Method::POST, "/message:send", &headers, body).await?;
        assert_eq!((answer.status, &*answer.media_type), (200, media_type), "{}", answer.body);
        let body = message("tck-complete-task").to_string();
        let refused =
            server.send(Method::POST, "/message:send", &[&header, "a2a-version: 99.0"], body).await?;
        assert_eq!((refused.status, &refused.body["error"]["code"]), (400, &json!(400)), "{}", refused.body);
    }
    Ok(())
}

#[tokio::test]
async fn each_word_of_the_tck_has_its_answer() -> Result<()> {
    let server = Server::start().await?;
    for (word, path, expected) in [
        ("tck-complete-task", "/task/status/message/parts/0/text", json!("Hello from TCK")),
        ("tck-artifact-text", "/task/artifacts/0/parts/0/text", json!("Generated text content")),
        ("tck-artifact-file", "/task/artifacts/0/parts/0/filename", json!("output.txt")),
        ("tck-artifact-file-url", "/task/artifacts/0/parts/0/url", json!("https://example.com/output.txt")),
        ("tck-artifact-data", "/task/artifacts/0/parts/0/data", json!({"key": "value", "count": 42})),
        ("tck-message-response", "/message/parts/0/text", json!("Direct message response")),
        ("tck-input-required", "/task/status/state", json!("TASK_STATE_INPUT_REQUIRED")),
        ("tck-reject-task", "/task/status/state", json!("TASK_STATE_REJECTED")),
        ("tck-stream-artifact-chunked", "/task/artifacts/0/parts/0/text", json!("chunk-1 chunk-2")),
    ] {
        let answer = server.call("SendMessage", message(word)).await?;
        assert_eq!(answer["result"].pointer(path), Some(&expected), "{word}: {answer}");
    }
    Ok(())
}
