use anyhow::{Result, ensure};
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::Answer;
use caipe_tests::supervisor::Supervisor;
use serde_json::{Value, json};

/// A bad request: what it is, its body, the code of the error, and what its message must name.
type Bad = (&'static str, String, i64, &'static str);

fn call(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}

fn say(message: &Value) -> String {
    let mut whole = json!({"role": "user", "kind": "message", "messageId": "m", "parts": [{"kind": "text", "text": "hi"}]});
    for (key, value) in message.as_object().into_iter().flatten() {
        whole[key] = value.clone();
    }
    call("message/stream", &json!({"message": whole}))
}

fn table() -> Vec<Bad> {
    vec![
        ("not JSON", "{oops".into(), -32700, ""),
        ("nothing", String::new(), -32700, ""),
        ("a number", "7".into(), -32600, ""),
        ("an empty batch", "[]".into(), -32600, ""),
        ("no method", json!({"jsonrpc": "2.0", "id": 7}).to_string(), -32600, "method"),
        (
            "another JSON-RPC",
            json!({"jsonrpc": "1.0", "id": 7, "method": "tasks/get"}).to_string(),
            -32600,
            "jsonrpc",
        ),
        ("an unknown method", call("tasks/frobnicate", &json!({})), -32601, "tasks/frobnicate"),
        (
            "no parameters",
            json!({"jsonrpc": "2.0", "id": 7, "method": "message/stream"}).to_string(),
            -32602,
            "",
        ),
        ("parameters of another type", call("message/stream", &json!("hi")), -32602, ""),
        ("parts of another type", say(&json!({"parts": "hi"})), -32602, "message.parts"),
        (
            "a part of another type",
            say(&json!({"parts": [{"kind": "text", "text": 7}]})),
            -32602,
            "message.parts[0]",
        ),
        ("a role that is none", say(&json!({"role": "boss"})), -32602, "message.role"),
        ("no message id", say(&json!({"messageId": null})), -32602, "messageId"),
        ("no parts", say(&json!({"parts": []})), -32602, "message.parts"),
        (
            "half a character",
            say(&json!({"parts": [{"kind": "text", "text": "HALF"}]})).replace("HALF", "\\ud800"),
            -32602,
            "message.parts",
        ),
        ("no words", say(&json!({"parts": [{"kind": "text", "text": " "}]})), -32602, "message"),
        ("a message to an unknown task", say(&json!({"taskId": "no-such-task"})), -32001, "no-such-task"),
        ("an unknown task", call("tasks/get", &json!({"id": "no-such-task"})), -32001, "no-such-task"),
        (
            "cancelling an unknown task",
            call("tasks/cancel", &json!({"id": "no-such-task"})),
            -32001,
            "no-such-task",
        ),
        ("a task id of another type", call("tasks/get", &json!({"id": 7})), -32602, "id"),
    ]
}

async fn refused(supervisor: &Supervisor, (what, body, code, names): Bad) -> Result<()> {
    let has_id = body.contains("\"id\":7,") || body.contains("\"id\":7}");
    let text = supervisor.post(body).await?.text().await?;
    let reply: Value = serde_json::from_str(text.trim_start_matches("data:").trim())
        .map_err(|error| anyhow::anyhow!("{what}: the answer is not JSON ({error}): {text}"))?;
    ensure!(reply["error"]["code"] == code, "{what}: wanted {code}, got {reply}");
    let words = reply["error"].to_string();
    ensure!(words.contains(names), "{what}: {words} does not name {names:?}");
    ensure!(!has_id || reply["id"] == 7, "{what}: the id is not given back: {reply}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_and_disturb_nobody() -> Result<()> {
    let slow = json!({"repeat": {"token": "tick ", "times": 60}, "delay_ms": 20});
    let scenario = Scenario::new().turn(json!({"user": "slowly"}), slow).answers("*", "Hello.");
    let mut supervisor = scenario.set("prompts", json!({"answerMode": "Marker"})).setup()?.start().await?;
    let mut stream = supervisor.stream("slowly", None).await?;
    let mut events = stream.read_until(|event| event["artifact"]["name"] == "streaming_result").await?;

    for bad in table() {
        refused(&supervisor, bad).await?;
    }

    events.extend(stream.rest().await?);
    let answer = supervisor.checked(Answer::new(events))?;
    assert_eq!(answer.texts("streaming_result").concat(), "tick ".repeat(60));
    ensure!(supervisor.is_alive()?, "it died: {}", supervisor.log());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_20_megabytes_is_refused_with_the_limit() -> Result<()> {
    let supervisor = Scenario::new().answers("*", "Hello.").setup()?.start().await?;
    let text = "x".repeat(20_000_000);
    let response = supervisor.post(say(&json!({"parts": [{"kind": "text", "text": text}]}))).await?;
    assert_eq!(response.status().as_u16(), 413);
    let words = response.text().await?;
    ensure!(
        words.to_lowercase().contains("mib") || words.contains("bytes"),
        "it does not name the limit: {words}"
    );
    assert_eq!(supervisor.ask("hi").await?.result()?, "Hello.");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_content_type_is_refused() -> Result<()> {
    let supervisor = Scenario::new().answers("*", "Hello.").setup()?.start().await?;
    let request = reqwest::Client::builder().no_proxy().build()?.post(supervisor.url());
    let response = request.header("content-type", "text/plain").body("hi").send().await?;
    assert_eq!(response.status().as_u16(), 415);
    Ok(())
}
