use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, split};

use super::{Opening, converse};
use crate::mcp::error::StartError;
use crate::mcp::tolerant_transport::TolerantTransport;
use caipe_bridge::process::SpawnError;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::sync::mpsc;

/// A server that is asleep until it has been asked twice, and then answers in order. Returns the messages after that.
async fn sleepy(stream: DuplexStream, answers: [Value; 2]) -> Vec<Value> {
    let (reader, mut writer) = split(stream);
    let mut lines = BufReader::new(reader).lines();
    let mut questions = Vec::new();
    for _ in 0..2 {
        questions.push(serde_json::from_str::<Value>(&lines.next_line().await.unwrap().unwrap()).unwrap());
    }
    assert_eq!(
        (&questions[0]["method"], &questions[1]["method"]),
        (&json!("server/discover"), &json!("initialize"))
    );
    for (question, answer) in questions.iter().zip(answers) {
        reply(&mut writer, question, answer).await;
    }
    let tools = json!({"result": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}});
    let mut sent = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["method"] == "tools/list" {
            reply(&mut writer, &message, tools.clone()).await;
        }
        sent.push(message);
    }
    sent
}

async fn reply(writer: &mut (impl tokio::io::AsyncWrite + Unpin), question: &Value, mut answer: Value) {
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = question["id"].clone();
    writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
}

/// Begins with such a server. Returns the protocol version agreed on, and the messages to the server after that.
async fn begin(answers: [Value; 2]) -> (String, Vec<Value>) {
    let (ours, theirs) = tokio::io::duplex(4096);
    let server = tokio::spawn(sleepy(theirs, answers));
    let (reader, writer) = split(ours);
    let (changed, _noted) = mpsc::channel(1);
    let opened = converse(
        TolerantTransport::with_child(AsyncRwTransport::new_client(reader, writer)),
        Opening::Probe,
        changed,
    )
    .await;
    let session = opened.unwrap();
    assert_eq!(session.list.tools.len(), 1);
    let version = session.protocol_version().unwrap().to_string();
    session.stop.cancel();
    drop(session);
    (version, server.await.unwrap())
}

fn refusal(code: i32) -> Value {
    json!({"error": {"code": code, "message": "not like this"}})
}

/// On a paused clock, as the next: the ten seconds after which the old way is tried cost nothing.
#[tokio::test(start_paused = true)]
async fn bears_a_late_refusal_of_the_first_question() {
    let info = json!({"result": {
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "sleepy", "version": "1"},
    }});
    let (version, sent) = begin([refusal(-32601), info]).await;
    assert_eq!((version.as_str(), &sent[0]["method"]), ("2025-11-25", &json!("notifications/initialized")));
}

#[tokio::test(start_paused = true)]
async fn goes_by_a_late_answer_to_the_first_question() {
    let discovered = json!({"result": {
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        "serverInfo": {"name": "sleepy", "version": "1"}, "ttlMs": 0, "cacheScope": "private",
    }});
    let (version, sent) = begin([discovered, refusal(-32022)]).await;
    assert_eq!((version.as_str(), &sent[0]["method"]), ("2026-07-28", &json!("tools/list")));
    assert_eq!(sent[0]["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
}

#[test]
fn tries_the_ways_to_begin_in_turn() {
    let ended = StartError::Ended { hint: String::new() };
    let refused = StartError::Handshake { reason: String::new(), hint: String::new() };
    let absent = StartError::Spawn(SpawnError::NoSuchProgram { command: String::new() });
    for (before, error, after) in [
        (Opening::Probe, &ended, Opening::Initialize),
        (Opening::Initialize, &ended, Opening::Probe),
        (Opening::Discover, &ended, Opening::Probe),
        (Opening::Probe, &refused, Opening::Initialize),
        (Opening::Initialize, &refused, Opening::Discover),
        (Opening::Discover, &refused, Opening::Probe),
        (Opening::Discover, &absent, Opening::Discover),
    ] {
        assert_eq!(before.after_failure(error), after, "{before:?} {error}");
    }
}
