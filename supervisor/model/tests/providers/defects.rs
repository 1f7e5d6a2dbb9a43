//! One test per defect of the client library, against a server that misbehaves so.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use caipe_fixtures::openai::{
    Act, ModelServer, Piece, call_event, done_event, event, raw, stop_event, text_event, usage_event,
};
use caipe_model::{FinishReason, Message, ModelErrorKind, Role, ToolCall, ToolResult, Usage};
use serde_json::{Value, json};

use crate::support::{
    KEY, ask, calls, env, model, openai, openai_with, run, streamed_calls, text, thoughts, tool,
};

async fn server(act: Act) -> ModelServer {
    ModelServer::start([act]).await.unwrap()
}

async fn error_of(act: Act) -> (String, caipe_model::ModelError) {
    let server = server(act).await;
    let (events, end) = run(&*openai(&server), ask("hello")).await;
    (text(&events), end.unwrap_err())
}

#[tokio::test]
async fn an_answer_streams_and_finishes() {
    let server = server(Act::stream([
        text_event("Hel"),
        text_event("lo"),
        stop_event("stop"),
        usage_event(11, 5),
        done_event(),
    ]))
    .await;
    let (events, end) = run(&*openai(&server), ask("hello")).await;
    let completion = end.unwrap();
    assert_eq!(text(&events), "Hello");
    assert_eq!(completion.message, Message::text(Role::Assistant, "Hello"));
    assert_eq!(completion.reason, FinishReason::Stop);
    assert_eq!(completion.usage, Usage { input_tokens: 11, output_tokens: 5, ..Usage::default() });
    assert_eq!(completion.model, "openai/gpt-test");

    let received = server.received().remove(0);
    assert_eq!(received.uri.path(), "/v1/chat/completions");
    assert_eq!(received.headers["authorization"], format!("Bearer {KEY}"));
    let names: Vec<_> =
        received.body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["search", "task"], "tools are sent in one order, whatever order they come in");
}

#[tokio::test]
async fn an_http_error_is_found_inside_the_first_item_of_the_stream() {
    let limited = Act::refuse(429, "slow down").header("retry-after", "7");
    let (_, error) = error_of(limited).await;
    assert_eq!(error.kind, ModelErrorKind::RateLimited);
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)));

    let (_, error) = error_of(Act::refuse(401, &format!("Incorrect API key provided: {KEY}"))).await;
    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert_eq!(error.to_string(), "openai/gpt-test: openai refused the key (401): check OPENAI_API_KEY");

    let (_, error) = error_of(Act::refuse(500, &format!("boom {KEY}"))).await;
    assert_eq!(error.kind, ModelErrorKind::Overloaded);
    assert_eq!(error.message, "openai is overloaded or broken (500): boom [redacted]");
}

#[tokio::test]
async fn nothing_is_read_after_an_error_in_the_stream() {
    let broken = json!({ "error": { "type": "server_error", "message": "engine died" } });
    let act =
        Act::stream([text_event("Hel"), event(&broken), text_event("lo"), stop_event("stop"), done_event()]);
    let (shown, error) = error_of(act).await;
    assert_eq!((shown.as_str(), error.kind), ("Hel", ModelErrorKind::Overloaded));
    assert!(error.message.contains("engine died"), "{error}");
}

#[tokio::test]
async fn gemini_does_not_finish_after_a_cut_connection() {
    // The adapter reports the broken connection and then an end with what it has.
    let part = json!({ "candidates": [{ "content": { "parts": [{ "text": "Hel" }] } }] });
    let server =
        server(Act::stream([event(&part), Piece::Pause(Duration::from_millis(20)), Piece::Cut])).await;
    let gemini = model(&env(&[
        ("GOOGLE_API_KEY", KEY),
        ("GOOGLE_GEMINI_MODEL_NAME", "gemini-test"),
        ("GOOGLE_GEMINI_BASE_URL", &server.url()),
        ("MAX_LLM_RETRIES", "0"),
    ]));
    let (events, end) = run(&*gemini, ask("hello")).await;
    assert_eq!(text(&events), "Hel");
    assert_eq!(end.unwrap_err().kind, ModelErrorKind::Transport);
}

#[tokio::test]
async fn a_clean_close_in_the_middle_is_a_truncated_answer() {
    for pieces in [
        vec![text_event("Hel")],
        // The reason came, the end did not.
        vec![text_event("Hel"), stop_event("stop")],
        // The end came, the reason did not.
        vec![text_event("Hel"), done_event()],
        // Half an event.
        vec![text_event("Hel"), raw("data: {\"choices\": [{\"del")],
    ] {
        let (shown, error) = error_of(Act::stream(pieces)).await;
        assert_eq!((shown.as_str(), error.kind), ("Hel", ModelErrorKind::Truncated), "{error}");
    }
}

#[tokio::test]
async fn gemini_and_ollama_do_not_finish_after_a_clean_close() {
    let part = json!({ "candidates": [{ "content": { "parts": [{ "text": "Hel" }] } }] });
    let gemini_server = server(Act::stream([event(&part)])).await;
    let line = json!({ "message": { "role": "assistant", "content": "Hel" }, "done": false });
    let ollama_server = server(Act::stream([raw(format!("{line}\n"))])).await;
    let models = [
        model(&env(&[
            ("GOOGLE_API_KEY", KEY),
            ("GOOGLE_GEMINI_MODEL_NAME", "gemini-test"),
            ("GOOGLE_GEMINI_BASE_URL", &gemini_server.url()),
            ("MAX_LLM_RETRIES", "0"),
        ])),
        model(&env(&[
            ("LLM_PROVIDER", "ollama"),
            ("OLLAMA_MODEL_NAME", "qwen-test"),
            ("OLLAMA_HOST", &ollama_server.url()),
            ("MAX_LLM_RETRIES", "0"),
        ])),
    ];
    for model in models {
        let (events, end) = run(&*model, ask("hello")).await;
        assert_eq!(text(&events), "Hel", "{}", model.name());
        assert_eq!(end.unwrap_err().kind, ModelErrorKind::Truncated, "{}", model.name());
    }
}

#[tokio::test]
async fn events_lost_between_cr_and_lf_do_not_pass_for_an_answer() {
    let frame = |name: &str, data: Value| {
        [format!("event: {name}\r\ndata: {data}\r"), "\n\r".to_owned(), "\n".to_owned()]
    };
    let start =
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 1, "output_tokens": 1 } } });
    let block =
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } });
    let delta = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hello" } });
    let stop = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 2 } });
    let frames = [
        frame("message_start", start),
        frame("content_block_start", block),
        frame("content_block_delta", delta),
        frame("message_delta", stop),
        frame("message_stop", json!({ "type": "message_stop" })),
    ];
    let pause = || Piece::Pause(Duration::from_millis(5));
    let pieces = frames.into_iter().flatten().flat_map(|bytes| [raw(bytes), pause()]);
    let server = server(Act::stream(pieces)).await;
    let claude = model(&env(&[
        ("ANTHROPIC_API_KEY", KEY),
        ("ANTHROPIC_BASE_URL", &server.url()),
        ("MAX_LLM_RETRIES", "0"),
    ]));
    match run(&*claude, ask("hello")).await {
        (events, Ok(completion)) => {
            assert_eq!(text(&events), "Hello", "a success must be a whole one");
            assert_eq!(completion.message.plain_text(), "Hello");
        }
        (_, Err(error)) => {
            assert!(matches!(error.kind, ModelErrorKind::Truncated | ModelErrorKind::Protocol), "{error}");
        }
    }
}

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
async fn the_models_name_is_sent_as_it_is() {
    let server = server(Act::say("ok")).await;
    let model = openai_with(&server, &[("OPENAI_MODEL_NAME", "my-model-high")]);
    run(&*model, ask("hello")).await.1.unwrap();
    let body = &server.received()[0].body;
    assert_eq!(body["model"], "my-model-high");
    assert!(body.get("reasoning_effort").is_none(), "{body}");
}

#[tokio::test]
async fn nonsense_is_called_nonsense() {
    let page =
        Act::body(200, "<html><body>Welcome to nginx</body></html>\n\n").header("content-type", "text/html");
    let whole = Act::body(200, "{\"choices\":[{\"message\":{\"content\":\"not streamed\"}}]}\n\n");
    let junk = Act::stream([raw("data: {{{ not json\n\n")]);
    for act in [page, whole, junk] {
        let (_, error) = error_of(act).await;
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{error}");
        assert!(error.message.contains("check the base URL"), "{error}");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_stopped() {
    let mebibyte = "x".repeat(1024 * 1024);
    let (shown, error) = error_of(Act::stream((0..40).map(|_| text_event(&mebibyte)))).await;
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert!(error.message.contains("longer than 32 MiB"), "{error}");
    assert!(shown.len() <= 32 * 1024 * 1024, "{}", shown.len());
}

#[tokio::test]
async fn thoughts_are_kept_with_their_signatures_and_go_back_to_their_own_provider_only() {
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
