//! What can become of a message besides a task, and what is asked of one.

use caipe_a2a::model::AgentExtension;
use caipe_a2a::server::ServerOptions;
use reqwest::Response;
use serde_json::{Value, json};

use crate::agent::{Running, start, start_with};

const EXTENSION: &str = "https://example.com/ext/v1";

async fn post(server: &Running, headers: &[(&str, &str)], method: &str, params: Value) -> Response {
    let mut request = reqwest::Client::new().post(&server.url).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    request.body(body.to_string()).send().await.unwrap()
}

async fn answer(server: &Running, headers: &[(&str, &str)], method: &str, params: Value) -> Value {
    post(server, headers, method, params).await.json().await.unwrap()
}

fn new(text: &str) -> Value {
    json!({"message": {"role": "ROLE_USER", "messageId": "m1", "parts": [{"text": text}]}})
}

fn old(text: &str) -> Value {
    json!({"message": {"kind": "message", "role": "user", "messageId": "m1", "parts": [{"kind": "text", "text": text}]}})
}

const V1: (&str, &str) = ("a2a-version", "1.0");

#[tokio::test]
async fn a_direct_answer_is_a_bare_message_in_both_versions() {
    let server = start().await;
    let reply = answer(&server, &[V1], "SendMessage", new("hello")).await;
    let parts = json!([{"text": "hello to you"}]);
    let expected = json!({"message": {"messageId": "m-direct", "role": "ROLE_AGENT", "parts": parts}});
    assert_eq!(reply["result"], expected);

    let reply = answer(&server, &[], "message/send", old("hello")).await;
    assert_eq!(reply["result"]["kind"], "message");
    assert_eq!(reply["result"]["parts"], json!([{"kind": "text", "text": "hello to you"}]));
}

#[tokio::test]
async fn a_direct_answer_is_the_only_event_of_its_stream() {
    let server = start().await;
    let v1 = (V1, "SendStreamingMessage", new("hello"));
    let v0 = (("a2a-version", "0.3"), "message/stream", old("hello"));
    for (version, method, params) in [v1, v0] {
        let text = post(&server, &[version], method, params).await.text().await.unwrap();
        let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(data.len(), 1, "{text}");
        assert!(!text.contains("id: "), "a message has no place in a task's log: {text}");
        assert!(data[0].contains("hello to you"), "{text}");
    }
}

#[tokio::test]
async fn an_extension_that_is_required_must_be_declared() {
    let server = start_with(ServerOptions::default(), |card| {
        card.capabilities.extensions.push(AgentExtension {
            uri: EXTENSION.to_owned(),
            required: true,
            ..AgentExtension::default()
        });
    })
    .await;
    let refused = answer(&server, &[V1], "SendMessage", new("count 1")).await;
    assert_eq!(refused["error"]["code"], -32008);
    assert_eq!(refused["error"]["data"][0]["reason"], "EXTENSION_SUPPORT_REQUIRED");
    let refused = answer(&server, &[], "message/send", old("count 1")).await;
    assert_eq!(refused["error"]["code"], -32603, "0.3 has no code of its own for it");

    let list = format!("https://example.com/other, {EXTENSION}");
    let taken = post(&server, &[V1, ("a2a-extensions", &list)], "SendMessage", new("count 1")).await;
    assert_eq!(taken.headers()["a2a-extensions"], EXTENSION, "tells what is in force, and nothing else");
    assert!(taken.json::<Value>().await.unwrap()["result"]["task"].is_object());
    let taken = post(&server, &[("x-a2a-extensions", EXTENSION)], "message/send", old("count 1")).await;
    assert_eq!(taken.headers()["x-a2a-extensions"], EXTENSION);
}

#[tokio::test]
async fn a_message_without_an_id_is_taken_by_a_lenient_server_only() {
    let nameless = || json!({"message": {"role": "ROLE_USER", "parts": [{"text": "count 1"}]}});
    let misplaced = || {
        let mut params = nameless();
        params["taskId"] = json!("t99");
        params
    };
    let strict = start().await;
    assert_eq!(answer(&strict, &[V1], "SendMessage", nameless()).await["error"]["code"], -32602);

    let options = ServerOptions { lenient_messages: true, ..ServerOptions::default() };
    let lenient = start_with(options, |_| ()).await;
    let taken = answer(&lenient, &[V1], "SendMessage", nameless()).await;
    assert_ne!(taken["result"]["task"]["history"][0]["messageId"], json!(null), "{taken}");
    assert_eq!(answer(&lenient, &[V1], "SendMessage", misplaced()).await["error"]["code"], -32001);
    let old =
        json!({"message": {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": "x"}]}});
    assert_eq!(answer(&lenient, &[], "message/send", old).await["error"]["code"], -32602, "0.3 stays strict");
}

#[tokio::test]
async fn a_part_of_another_type_is_refused_where_the_server_is_strict() {
    let data = || json!({"message": {"role": "ROLE_USER", "messageId": "m", "parts": [{"data": {"a": 1}}]}});
    let lax = start().await;
    assert!(answer(&lax, &[V1], "SendMessage", data()).await["result"].is_object());
    let options = ServerOptions { strict_input_modes: true, ..ServerOptions::default() };
    let strict = start_with(options, |_| ()).await;
    assert_eq!(answer(&strict, &[V1], "SendMessage", data()).await["error"]["code"], -32005);
}

#[tokio::test]
async fn the_extended_card_is_for_callers_that_are_known() {
    let none = start().await;
    let asked = answer(&none, &[V1], "GetExtendedAgentCard", json!({})).await;
    assert_eq!(asked["error"]["code"], -32004, "nothing was announced");
    let asked = answer(&none, &[], "agent/getAuthenticatedExtendedCard", json!({})).await;
    assert_eq!(asked["error"]["code"], -32007);

    let server =
        start_with(ServerOptions::default(), |card| card.capabilities.extended_agent_card = true).await;
    let stranger = answer(&server, &[V1], "GetExtendedAgentCard", json!({})).await;
    assert_eq!(stranger["error"]["code"], -32007);
    let known = answer(&server, &[V1, ("x-caller", "ann")], "GetExtendedAgentCard", json!({})).await;
    assert_eq!(known["result"]["description"], "For ann");
    assert_eq!(known["result"]["url"], json!(null), "a pure card of 1.0");
    let known =
        answer(&server, &[("x-caller", "ann")], "agent/getAuthenticatedExtendedCard", json!({})).await;
    assert_eq!(known["result"]["url"], server.url.trim_end_matches('/'), "0.3 finds its members");
}
