//! One test per defect of the client library, against a server that misbehaves so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use caipe_fixtures::openai::{Act, Piece, done_event, event, raw, stop_event, text_event, usage_event};
use caipe_model::{FinishReason, Message, ModelErrorKind, Role, Usage};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{KEY, ask, env, model, openai, openai_with, run, server, text};

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
async fn events_lost_between_cr_and_lf_do_not_count_as_an_answer() {
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

/// A server that starts an event and never ends its line. Returns its address and the number of bytes that it has sent.
async fn endless_line() -> (String, Arc<AtomicUsize>) {
    static PIECE: [u8; 64 * 1024] = [b'x'; 64 * 1024];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, sent) =
        (format!("http://{}/v1/", listener.local_addr().unwrap()), Arc::<AtomicUsize>::default());
    let count = sent.clone();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: ";
        // The client waits for no response before it has sent its request.
        let mut request = vec![0; 64 * 1024];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let mut written = stream.write_all(head).await;
        while written.is_ok() {
            written = stream.write_all(&PIECE).await;
            count.fetch_add(PIECE.len(), Ordering::Relaxed);
        }
    });
    (url, sent)
}

/// 300 MB in one line kept a core busy for minutes, and neither a deadline nor a byte limit ended it.
#[tokio::test]
async fn a_line_without_end_is_given_up() {
    let (url, sent) = endless_line().await;
    let env = env(&[
        ("OPENAI_API_KEY", KEY),
        ("OPENAI_MODEL_NAME", "gpt-test"),
        ("MAX_LLM_RETRIES", "0"),
        ("OPENAI_ENDPOINT", &url),
    ]);
    let (events, end) = run(&*model(&env), ask("hi")).await;
    let error = end.unwrap_err();
    assert_eq!((events.len(), error.kind), (0, ModelErrorKind::Protocol), "{error}");
    assert!(error.message.contains("one line of the answer is too long"), "{error}");
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 128 * 1024 * 1024, "{sent} bytes were read");
}
