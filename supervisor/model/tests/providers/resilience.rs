//! Retries, fallbacks, deadlines and cancellation, seen from the server.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use caipe_fixtures::openai::{
    Act, ModelServer, Piece, call_event, done_event, event, reasoning_event, stop_event, text_event,
};
use caipe_model::{ModelErrorKind, ModelEvent};
use futures::StreamExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{KEY, ask, env, model, openai, openai_with, run, text};

const RETRIES: (&str, &str) = ("MAX_LLM_RETRIES", "2");

#[tokio::test]
async fn a_failed_call_is_tried_again_and_only_the_answer_is_seen() {
    let limited = Act::refuse(429, "slow down").header("retry-after-ms", "1");
    let server = ModelServer::start([limited, Act::stream([]), Act::say("hello")]).await.unwrap();
    let (events, end) = run(&*openai_with(&server, &[RETRIES]), ask("hi")).await;
    assert_eq!(end.unwrap().message.plain_text(), "hello");
    assert_eq!(text(&events), "hello");
    let bodies: Vec<_> = server.received().into_iter().map(|received| received.body).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| *body == bodies[0]), "each attempt asks the same");
}

#[tokio::test]
async fn attempts_are_bounded() {
    let server = ModelServer::start([Act::refuse(503, "busy").header("retry-after", "0")]).await.unwrap();
    let error = run(&*openai_with(&server, &[("MAX_LLM_RETRIES", "1")]), ask("hi")).await.1.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Overloaded);
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn what_another_attempt_cannot_cure_is_not_tried_again() {
    let overflow =
        json!({ "error": { "code": "context_length_exceeded", "message": "too long" } }).to_string();
    for (act, kind) in [
        (Act::refuse(401, "bad key"), ModelErrorKind::Auth),
        (Act::refuse(400, "unknown parameter"), ModelErrorKind::InvalidRequest),
        (Act::body(400, overflow), ModelErrorKind::ContextOverflow),
        (Act::refuse(429, "come tomorrow").header("retry-after", "3000"), ModelErrorKind::RateLimited),
    ] {
        let server = ModelServer::start([act]).await.unwrap();
        let error = run(&*openai_with(&server, &[RETRIES]), ask("hi")).await.1.unwrap_err();
        assert_eq!((error.kind, server.received().len()), (kind, 1), "{error}");
    }
}

#[tokio::test]
async fn nothing_is_tried_again_once_something_was_shown() {
    let half_a_text = Act::stream([text_event("Hel")]);
    let half_a_call = Act::stream([call_event(0, "c", "task", "")]);
    for act in [half_a_text, half_a_call] {
        let server = ModelServer::start([act, Act::say("again")]).await.unwrap();
        let (events, end) = run(&*openai_with(&server, &[RETRIES]), ask("hi")).await;
        assert_eq!(end.unwrap_err().kind, ModelErrorKind::Truncated);
        assert_eq!((events.len(), server.received().len()), (1, 1));
    }
}

#[tokio::test]
async fn thoughts_do_not_count_as_shown() {
    let thought = reasoning_event("hmm");
    let server = ModelServer::start([Act::stream([thought]), Act::say("hello")]).await.unwrap();
    let (events, end) = run(&*openai_with(&server, &[RETRIES]), ask("hi")).await;
    assert_eq!(events.first(), Some(&ModelEvent::ReasoningDelta("hmm".into())));
    assert_eq!(end.unwrap().message.plain_text(), "hello");
}

#[tokio::test]
async fn the_next_model_answers_where_the_first_one_cannot() {
    let reply = event(
        &json!({ "candidates": [{ "content": { "parts": [{ "text": "from gemini" }] }, "finishReason": "STOP" }] }),
    );
    let second = ModelServer::start([Act::stream([reply])]).await.unwrap();
    let refused = [Act::refuse(401, "bad key"), Act::refuse(500, "boom"), Act::body(200, "<html>")];
    for act in refused {
        let first = ModelServer::start([act]).await.unwrap();
        let fallbacks = [
            ("LLM_PROVIDER", "openai"),
            ("LLM_FALLBACKS", "google-gemini:gemini-test"),
            ("GOOGLE_API_KEY", KEY),
            ("GOOGLE_GEMINI_BASE_URL", &second.url()),
        ];
        let completion = run(&*openai_with(&first, &fallbacks), ask("hi")).await.1.unwrap();
        assert_eq!(completion.message.plain_text(), "from gemini");
        assert_eq!(completion.model, "google-gemini/gemini-test");
    }
}

#[tokio::test]
async fn the_next_model_is_not_asked_to_swallow_a_refused_request() {
    let second = ModelServer::start([Act::say("no")]).await.unwrap();
    for act in [Act::refuse(400, "unknown parameter"), Act::stream([text_event("Hel")])] {
        let first = ModelServer::start([act]).await.unwrap();
        let fallbacks =
            [("LLM_PROVIDER", "openai"), ("LLM_FALLBACKS", "ollama:qwen"), ("OLLAMA_HOST", &second.url())];
        run(&*openai_with(&first, &fallbacks), ask("hi")).await.1.unwrap_err();
    }
    assert!(second.received().is_empty());
}

#[tokio::test]
async fn a_deadline_ends_a_stalled_answer_and_closes_the_connection() {
    let server = ModelServer::start([Act::stream([text_event("Hel"), Piece::Stall])]).await.unwrap();
    let (events, end) = run(&*openai_with(&server, &[("LLM_TIMEOUT_SECONDS", "0.2")]), ask("hi")).await;
    let error = end.unwrap_err();
    assert_eq!((text(&events).as_str(), error.kind), ("Hel", ModelErrorKind::Deadline));
    assert!(error.message.contains("LLM_TIMEOUT_SECONDS"), "{error}");
    server.clients_left(1).await.unwrap();
}

#[tokio::test]
async fn a_deadline_ends_a_call_that_is_never_answered_and_is_not_retried() {
    let server = ModelServer::start([Act::stream([Piece::Stall])]).await.unwrap();
    let (_, end) = run(&*openai_with(&server, &[("LLM_TIMEOUT_SECONDS", "0.2")]), ask("hi")).await;
    assert_eq!(end.unwrap_err().kind, ModelErrorKind::Deadline);
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn an_answer_that_stops_coming_is_a_transport_error() {
    let server = ModelServer::start([Act::stream([text_event("Hel"), Piece::Stall])]).await.unwrap();
    let error =
        run(&*openai_with(&server, &[("LLM_IDLE_TIMEOUT_SECONDS", "0.1")]), ask("hi")).await.1.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Transport, "{error}");
    server.clients_left(1).await.unwrap();
}

#[tokio::test]
async fn cancelling_closes_the_connection() {
    let server = ModelServer::start([Act::stream([text_event("Hel"), Piece::Stall])]).await.unwrap();
    let cancel = CancellationToken::new();
    let mut stream = openai(&server).stream(ask("hi"), cancel.clone());
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelEvent::TextDelta("Hel".into()));
    let began = Instant::now();
    cancel.cancel();
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind, ModelErrorKind::Cancelled);
    assert!(stream.next().await.is_none());
    // The stream itself is still held: the connection must not wait for it.
    server.clients_left(1).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let server = ModelServer::start([Act::stream([text_event("Hel"), Piece::Stall])]).await.unwrap();
    let mut stream = openai_with(&server, &[RETRIES]).stream(ask("hi"), CancellationToken::new());
    stream.next().await.unwrap().unwrap();
    drop(stream);
    server.clients_left(1).await.unwrap();
}

#[tokio::test]
async fn cancelling_ends_the_wait_between_two_attempts() {
    let server =
        ModelServer::start([Act::refuse(429, "slow down").header("retry-after", "60")]).await.unwrap();
    let cancel = CancellationToken::new();
    let mut stream = openai_with(&server, &[RETRIES]).stream(ask("hi"), cancel.clone());
    let waiting = tokio::time::timeout(Duration::from_millis(300), stream.next()).await;
    assert!(waiting.is_err(), "it waits as long as it was asked to");
    cancel.cancel();
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind, ModelErrorKind::Cancelled);
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn no_connection_is_reported_without_the_address_of_credentials() {
    let server = ModelServer::start([]).await.unwrap();
    let url = server.url().replace("http://", "http://user:hunter2hunter2@");
    drop(server);
    let env = env(&[("OPENAI_API_KEY", KEY), ("OPENAI_ENDPOINT", &url), ("MAX_LLM_RETRIES", "0")]);
    let error = run(&*model(&env), ask("hi")).await.1.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Transport);
    assert!(error.message.starts_with("no connection to 127.0.0.1"), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_finished_turn_leaves_the_connection_for_the_next() {
    let server =
        ModelServer::start([Act::stream([text_event("a"), stop_event("stop"), done_event()])]).await.unwrap();
    let model = openai(&server);
    for _ in 0..10 {
        run(&*model, ask("hi")).await.1.unwrap();
    }
    let peers: BTreeSet<_> = server.received().iter().map(|received| received.peer).collect();
    assert!(peers.len() < 10, "a handshake for each turn: {peers:?}");
}
