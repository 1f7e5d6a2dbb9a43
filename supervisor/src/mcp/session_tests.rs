use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, split};

use super::{Opening, converse};
use crate::mcp::error::StartError;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::sync::mpsc;

/// A server that is asleep until it has been asked twice, and then answers in order.
async fn sleepy(stream: DuplexStream, first_answer: Value) {
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
    let info = json!({"result": {
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "sleepy", "version": "1"},
    }});
    let tools = json!({"result": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}});
    for (question, answer) in questions.iter().zip([first_answer, info]) {
        reply(&mut writer, question, answer).await;
    }
    while let Some(line) = lines.next_line().await.unwrap() {
        let question: Value = serde_json::from_str(&line).unwrap();
        if question["method"] == "tools/list" {
            reply(&mut writer, &question, tools.clone()).await;
        }
    }
}

async fn reply(writer: &mut (impl tokio::io::AsyncWrite + Unpin), question: &Value, mut answer: Value) {
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = question["id"].clone();
    writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
}

/// On a paused clock, so that the ten seconds after which the old way is tried cost nothing.
#[tokio::test(start_paused = true)]
async fn bears_a_server_that_answers_the_first_question_late() {
    let discovered = json!({"result": {
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        "serverInfo": {"name": "sleepy", "version": "1"}, "ttlMs": 0, "cacheScope": "private",
    }});
    let refused = json!({"error": {"code": -32601, "message": "no such method"}});
    for first_answer in [discovered, refused] {
        let (ours, theirs) = tokio::io::duplex(4096);
        let server = tokio::spawn(sleepy(theirs, first_answer));
        let (reader, writer) = split(ours);
        let (changed, _noted) = mpsc::channel(1);
        let opened = converse(AsyncRwTransport::new_client(reader, writer), Opening::Probe, changed).await;
        let (peer, tools, connection) = opened.unwrap();
        assert_eq!(peer.peer_info().unwrap().protocol_version.to_string(), "2025-11-25");
        assert_eq!(tools.len(), 1);
        connection.stop.cancel();
        drop(peer);
        server.await.unwrap();
    }
}

#[test]
fn tries_the_ways_to_begin_in_turn() {
    let ended = StartError::Ended { hint: String::new() };
    let refused = StartError::Handshake { reason: String::new(), hint: String::new() };
    let absent = StartError::NoSuchProgram { command: String::new() };
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
