//! Tool calls, their results and the thoughts between them, against a server that serves them badly.

use std::sync::Arc;

use bytes::Bytes;
use caipe_fixtures::openai::{Act, ModelServer, call_event, done_event, event, raw, stop_event};
use caipe_model::{FinishReason, Message, Role, ToolCall, ToolResult, Usage};
use serde_json::{Value, json};

use crate::support::{KEY, ask, calls, env, model, openai, run, server, streamed_calls, thoughts, tool};

#[tokio::test]
async fn arguments_stream_as_what_is_new_and_end_as_one_text() {
    let server = server(Act::stream([
        call_event(0, "call_a", "task", ""),
        call_event(1, "call_b", "search", ""),
        call_event(0, "", "", "{\"subagent"),
        call_event(1, "", "", "{\"q\":"),
        call_event(0, "", "", "_type\":\"jira\"}"),
        call_event(1, "", "", "\"ä\"}"),
        stop_event("tool_calls"),
        done_event(),
    ]))
    .await;
    let (events, end) = run(&*openai(&server), ask("compare")).await;
    let completion = end.unwrap();
    let expected = [
        ToolCall {
            id: "call_a".into(),
            name: "task".into(),
            arguments: r#"{"subagent_type":"jira"}"#.into(),
        },
        ToolCall { id: "call_b".into(), name: "search".into(), arguments: r#"{"q":"ä"}"#.into() },
    ];
    assert_eq!(streamed_calls(&events), expected);
    assert_eq!(calls(&completion), expected);
    assert_eq!(completion.reason, FinishReason::ToolCalls);
}

#[tokio::test]
async fn arguments_that_are_not_json_stay_as_the_model_wrote_them() {
    let server = server(Act::stream([
        call_event(0, "call_a", "task", "{\"subagent_type\": jira"),
        stop_event("tool_calls"),
        done_event(),
    ]))
    .await;
    let completion = run(&*openai(&server), ask("compare")).await.1.unwrap();
    assert_eq!(calls(&completion)[0].arguments, "{\"subagent_type\": jira");
}

#[tokio::test]
async fn bedrock_arguments_that_are_not_json_do_not_become_an_empty_object() {
    let frames = [
        ("messageStart", json!({ "role": "assistant" })),
        (
            "contentBlockStart",
            json!({ "contentBlockIndex": 0, "start": { "toolUse": { "toolUseId": "t1", "name": "task" } } }),
        ),
        (
            "contentBlockDelta",
            json!({ "contentBlockIndex": 0, "delta": { "toolUse": { "input": "{\"broken\": " } } }),
        ),
        ("contentBlockStop", json!({ "contentBlockIndex": 0 })),
        ("messageStop", json!({ "stopReason": "tool_use" })),
        ("metadata", json!({ "usage": { "inputTokens": 4, "outputTokens": 2, "totalTokens": 6 } })),
    ];
    let body: Vec<u8> = frames.iter().flat_map(|(name, payload)| aws_frame(name, payload)).collect();
    let act = Act::body(200, Bytes::from(body)).header("content-type", "application/vnd.amazon.eventstream");
    let server = server(act).await;
    let bedrock = model(&env(&[
        ("LLM_PROVIDER", "aws-bedrock"),
        ("AWS_BEDROCK_MODEL_ID", "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-test"),
        ("AWS_BEARER_TOKEN_BEDROCK", KEY),
        ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", &server.url()),
        ("MAX_LLM_RETRIES", "0"),
    ]));
    let (events, end) = run(&*bedrock, ask("compare")).await;
    let completion = end.unwrap();
    let expected = [ToolCall { id: "t1".into(), name: "task".into(), arguments: "{\"broken\": ".into() }];
    assert_eq!((streamed_calls(&events), calls(&completion)), (expected.to_vec(), expected.to_vec()));
    assert_eq!(completion.usage.input_tokens, 4);
    // An ARN has a `::`, which the client would take for a namespace.
    let path = server.received()[0].uri.path().to_owned();
    assert_eq!(
        path,
        "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A%3Afoundation-model%2Fanthropic.claude-test/converse-stream"
    );
}

/// One frame of AWS's event stream.
fn aws_frame(name: &str, payload: &Value) -> Vec<u8> {
    let payload = payload.to_string().into_bytes();
    let headers: Vec<u8> = [(":event-type", name), (":message-type", "event")]
        .iter()
        .flat_map(|(key, value)| {
            let length = u16::try_from(value.len()).unwrap().to_be_bytes();
            [&[u8::try_from(key.len()).unwrap()], key.as_bytes(), &[7], &length, value.as_bytes()].concat()
        })
        .collect();
    let total = u32::try_from(16 + headers.len() + payload.len()).unwrap();
    let mut frame = [total.to_be_bytes(), u32::try_from(headers.len()).unwrap().to_be_bytes()].concat();
    frame.extend(crc32(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend(payload);
    frame.extend(crc32(&frame).to_be_bytes());
    frame
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    })
}

#[tokio::test]
async fn geminis_calls_have_ids_of_their_own_through_the_conversation() {
    let call = json!({ "candidates": [{ "content": { "parts": [{ "functionCall": { "name": "task", "args": { "n": 1 } }, "thoughtSignature": "sig" }] } }] });
    let last = json!({ "candidates": [{ "content": { "parts": [{ "functionCall": { "name": "task", "args": { "n": 2 } } }] }, "finishReason": "STOP" }] });
    let server = server(Act::stream([event(&call), event(&last)])).await;
    let gemini = model(&env(&[
        ("GOOGLE_API_KEY", KEY),
        ("GOOGLE_GEMINI_MODEL_NAME", "gemini-test"),
        ("GOOGLE_GEMINI_BASE_URL", &server.url()),
    ]));
    let mut request = ask("compare");
    let (events, end) = run(&*gemini, request.clone()).await;
    let first = end.unwrap();
    assert_eq!(streamed_calls(&events), calls(&first));
    let ids: Vec<_> = calls(&first).into_iter().map(|call| call.id).collect();
    assert_eq!(ids, ["call#task#0", "call#task#1"], "two calls in two events");

    request.messages.push(Arc::new(first.message));
    request.messages.push(Arc::new(Message::results(ids.iter().map(|id| ToolResult {
        call_id: id.clone(),
        content: "done".into(),
        is_error: false,
    }))));
    let second = run(&*gemini, request).await.1.unwrap();
    let ids: Vec<_> = calls(&second).into_iter().map(|call| call.id).collect();
    assert_eq!(ids, ["call#task#2", "call#task#3"], "a later turn does not repeat them");

    let sent = &server.received()[1].body["contents"];
    assert_eq!(
        sent[1]["parts"][0]["thoughtSignature"], "sig",
        "the signature goes back with its call: {sent}"
    );
    assert!(sent[1]["parts"][1].get("thoughtSignature").is_none(), "{sent}");
    assert_eq!(sent[2]["parts"][0]["functionResponse"]["name"], "task", "{sent}");
}

#[tokio::test]
async fn ollama_is_sent_every_result() {
    let line = json!({ "message": { "content": "ok" }, "done": true, "done_reason": "stop", "prompt_eval_count": 21, "eval_count": 8 });
    let server = server(Act::stream([raw(format!("{line}\n"))])).await;
    let ollama = model(&env(&[
        ("LLM_PROVIDER", "ollama"),
        ("OLLAMA_MODEL_NAME", "qwen-test"),
        ("OLLAMA_HOST", &server.url()),
    ]));
    let mut request = ask("compare");
    let results = ["one", "two"].map(|id| ToolResult {
        call_id: id.into(),
        content: format!("result {id}"),
        is_error: id == "two",
    });
    request.messages.push(Arc::new(Message::results(results)));
    let completion = run(&*ollama, request).await.1.unwrap();
    assert_eq!(completion.usage, Usage { input_tokens: 21, output_tokens: 8, ..Usage::default() });
    let sent = &server.received()[0].body["messages"];
    let contents: Vec<_> = sent
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| &message["content"])
        .collect();
    assert_eq!(contents, ["result one", "Error: result two"]);
}

#[tokio::test]
async fn thoughts_are_stored_with_their_signatures_and_go_back_to_their_own_provider_only() {
    let named = |name: &str, data: Value| raw(format!("event: {name}\ndata: {data}\n\n"));
    let block = |index: u32, block: Value| {
        named(
            "content_block_start",
            json!({ "type": "content_block_start", "index": index, "content_block": block }),
        )
    };
    let delta = |index: u32, delta: Value| {
        named("content_block_delta", json!({ "type": "content_block_delta", "index": index, "delta": delta }))
    };
    let stop =
        |index: u32| named("content_block_stop", json!({ "type": "content_block_stop", "index": index }));
    let server = server(Act::stream([
        named("message_start", json!({ "type": "message_start", "message": { "usage": { "input_tokens": 9, "output_tokens": 1 } } })),
        block(0, json!({ "type": "thinking", "thinking": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "Let me see." })),
        delta(0, json!({ "type": "signature_delta", "signature": "c2ln" })),
        stop(0),
        block(1, json!({ "type": "redacted_thinking", "data": "b3BhcXVl" })),
        stop(1),
        block(2, json!({ "type": "tool_use", "id": "toolu_1", "name": "search", "input": {} })),
        delta(2, json!({ "type": "input_json_delta", "partial_json": "{\"q\":1}" })),
        stop(2),
        named("message_delta", json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 8 } })),
        named("message_stop", json!({ "type": "message_stop" })),
    ]))
    .await;
    let claude = model(&env(&[("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", &server.url())]));
    let mut request = ask("think");
    let completion = run(&*claude, request.clone()).await.1.unwrap();
    assert_eq!(thoughts(&completion), [("Let me see.".to_owned(), Some("c2ln".to_owned()))]);
    assert_eq!(completion.usage.output_tokens, 8);

    request.messages.push(Arc::new(completion.message));
    request.messages.push(Arc::new(Message::results([ToolResult {
        call_id: "toolu_1".into(),
        content: "x".into(),
        is_error: false,
    }])));
    run(&*claude, request.clone()).await.1.unwrap();
    let replayed = server.received()[1].body["messages"][1]["content"].clone();
    assert_eq!(
        replayed,
        json!([
            { "type": "thinking", "thinking": "Let me see.", "signature": "c2ln" },
            { "type": "redacted_thinking", "data": "b3BhcXVl" },
            { "type": "tool_use", "id": "toolu_1", "name": "search", "input": { "q": 1 } },
        ])
    );

    let other = ModelServer::start([Act::say("ok")]).await.unwrap();
    run(&*openai(&other), request).await.1.unwrap();
    let foreign = other.received()[0].body["messages"].to_string();
    assert!(!foreign.contains("Let me see") && !foreign.contains("b3BhcXVl"), "{foreign}");
}

#[tokio::test]
async fn a_replayed_call_with_broken_arguments_is_an_object_again() {
    let server = server(Act::say("ok")).await;
    let mut request = ask("hello");
    let call = ToolCall { id: "c".into(), name: "task".into(), arguments: "{oops".into() };
    let parts = vec![caipe_model::Part::ToolCall(call)];
    request.messages.push(Arc::new(Message { role: Role::Assistant, parts, extra: None }));
    request.messages.push(Arc::new(Message::results([ToolResult {
        call_id: "c".into(),
        content: "not JSON".into(),
        is_error: true,
    }])));
    request.tools = [tool("task")].into();
    run(&*openai(&server), request).await.1.unwrap();
    let sent = &server.received()[0].body["messages"];
    assert_eq!(sent[2]["tool_calls"][0]["function"]["arguments"], r#"{"invalid_arguments":"{oops"}"#);
    assert_eq!(sent[3]["content"], "Error: not JSON");
}
