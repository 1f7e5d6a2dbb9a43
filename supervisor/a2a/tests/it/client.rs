//! Our client against our server, and against peers that misbehave.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use caipe_a2a::ProtocolVersion::{V0_3, V1_0};
use caipe_a2a::client::{A2aClient, ClientError, ClientOptions, EventStream, Reconnect, StreamEvent};
use caipe_a2a::model::{Event, Message, Reply, SendMessageConfiguration, SendMessageRequest, TaskState};
use futures::{StreamExt, TryStreamExt};
use serde_json::json;
use tokio::net::TcpListener;

use crate::agent::{Running, eventually, start};

async fn client(server: &Running, options: ClientOptions) -> A2aClient {
    A2aClient::connect(&server.url, reqwest::Client::new(), options).await.unwrap()
}

fn only(version: caipe_a2a::ProtocolVersion) -> ClientOptions {
    ClientOptions { version: Some(version), ..ClientOptions::default() }
}

fn ask(text: &str) -> SendMessageRequest {
    SendMessageRequest::new(Message::user("m1", text))
}

async fn all(stream: EventStream) -> Vec<StreamEvent> {
    tokio::time::timeout(Duration::from_secs(20), stream.try_collect()).await.unwrap().unwrap()
}

fn text(events: &[StreamEvent]) -> String {
    let chunks = events.iter().map(|event| match &event.event {
        Event::ArtifactUpdate(update) => update.artifact.text(),
        _ => String::new(),
    });
    chunks.collect()
}

#[tokio::test]
async fn the_newest_common_version_is_spoken() {
    let server = start().await;
    assert_eq!(client(&server, ClientOptions::default()).await.version(), V1_0);
    assert_eq!(client(&server, only(V0_3)).await.version(), V0_3);
    assert_eq!(client(&server, only(V0_3)).await.card().name, "Worker");
}

#[tokio::test]
async fn every_operation_works_in_both_versions() {
    let server = start().await;
    for version in [V0_3, V1_0] {
        let client = client(&server, only(version)).await;
        let Reply::Task(task) = client.send(ask("count 3")).await.unwrap() else { panic!() };
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(task.artifacts[0].text(), "0 1 2 ");
        assert_eq!(client.get(&task.id, None).await.unwrap(), *task);
        assert!(client.get(&task.id, Some(0)).await.unwrap().history.is_empty());

        let events = all(client.stream(ask("count 5")).await.unwrap()).await;
        assert_eq!(text(&events), "0 1 2 3 4 ");
        assert_eq!(events.iter().map(|e| e.seq.unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
        let id = events[0].event.task_id().unwrap();
        let rest = all(client.subscribe(id, Some(4)).await.unwrap()).await;
        assert_eq!(text(&rest), "3 4 ", "{version}");
        assert!(matches!(&rest[0].event, Event::Task(task) if task.artifacts[0].text() == "0 1 2 "));

        let configuration = SendMessageConfiguration { return_immediately: true, ..Default::default() };
        let request = SendMessageRequest { configuration: Some(configuration), ..ask("hold") };
        let Reply::Task(task) = client.send(request).await.unwrap() else { panic!() };
        let follower = client.subscribe(&task.id, None).await.unwrap();
        assert_eq!(client.cancel(&task.id).await.unwrap().status.state, TaskState::Canceled);
        assert_eq!(all(follower).await.last().unwrap().event.state(), Some(TaskState::Canceled));

        let error = client.get("nope", None).await.unwrap_err();
        assert!(matches!(&error, ClientError::Remote(error) if error.code == -32001), "{error}");
    }
}

#[tokio::test]
async fn a_stream_that_is_dropped_hangs_up_and_the_task_goes_on() {
    let server = start().await;
    let client = client(&server, ClientOptions::default()).await;
    let mut stream = client.stream(ask("hold")).await.unwrap();
    let id = stream.next().await.unwrap().unwrap().event.task_id().unwrap().to_owned();
    drop(stream);
    assert_eq!(client.get(&id, None).await.unwrap().status.state, TaskState::Working);
}

/// A peer that serves a card and answers every call with `answer`.
async fn peer(
    card: serde_json::Value,
    answer: impl Fn(HeaderMap) -> (StatusCode, &'static str, Body) + Clone + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app =
        Router::new().route("/.well-known/agent.json", get(move || async move { card.to_string() })).route(
            "/",
            post(move |headers: HeaderMap| {
                let (status, content_type, body) = answer(headers);
                async move { (status, [("content-type", content_type)], body) }
            }),
        );
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    url
}

fn old_card() -> serde_json::Value {
    json!({"name": "Old", "url": "http://0.0.0.0:8000/"})
}

const SSE: &str = "text/event-stream; charset=utf-8";

async fn stream_of(body: &'static str, options: ClientOptions) -> Vec<Result<StreamEvent, ClientError>> {
    let url = peer(old_card(), move |_| (StatusCode::OK, SSE, Body::from(body))).await;
    let client = A2aClient::connect(&url, reqwest::Client::new(), options).await.unwrap();
    assert_eq!(client.endpoint().as_str(), format!("{url}/"), "the card's own address is another's");
    client.stream(ask("x")).await.unwrap().collect().await
}

#[tokio::test]
async fn an_old_python_agent_is_understood() {
    // Found at the old path, CRLF, comments, no kinds, no numbers, something after the final status.
    let events = stream_of(
        concat!(
            ": ping\r\n\r\n",
            "data: {\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{\"id\":\"T\",\"contextId\":\"C\",\"status\":{\"state\":\"submitted\"}}}\r\n\r\n",
            "event: message\r\ndata: {\"result\":{\"taskId\":\"T\",\"contextId\":\"C\",\"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"text\":\"hi\"}]}}}\r\n\r\n",
            "data: {\"result\":{\"taskId\":\"T\",\"contextId\":\"C\",\"final\":true,\"status\":{\"state\":\"completed\"}}}\r\n\r\n",
            "data: never read\r\n\r\n",
        ),
        ClientOptions::default(),
    )
    .await;
    let events: Vec<_> = events.into_iter().map(Result::unwrap).collect();
    assert_eq!(events.len(), 3);
    assert_eq!(text(&events), "hi");
    assert_eq!(events[2].event.state(), Some(TaskState::Completed));
    assert!(events.iter().all(|event| event.seq.is_none()));
}

#[tokio::test]
async fn each_way_to_break_a_stream_has_its_name() {
    let working = r#"data: {"result":{"kind":"status-update","taskId":"T","contextId":"C","final":false,"status":{"state":"working"}}}"#;
    let cut: &'static str = Box::leak(format!("{working}\n\n").into_boxed_str());
    let half: &'static str = Box::leak(format!("{working}\n\ndata: {{\"result\":").into_boxed_str());
    let big: &'static str = Box::leak(format!("data: {}\n\n", "x".repeat(300_000)).into_boxed_str());
    let once = || ClientOptions { reconnect: Reconnect::off(), ..ClientOptions::default() };
    let small = || ClientOptions { max_message: 1000, ..once() };
    for (body, options, category) in [
        (cut, once(), "cut"),
        (half, once(), "cut"),
        ("", once(), "cut"),
        ("data: {\"error\":{\"code\":-32603,\"message\":\"no\"}}\n\n", once(), "remote"),
        ("data: nonsense\n\n", once(), "protocol"),
        ("data: {\"result\":{\"kind\":\"riddle\"}}\n\n", once(), "protocol"),
        ("data: {}\n\n", once(), "protocol"),
        (big, small(), "too_large"),
    ] {
        let events = stream_of(body, options).await;
        let error = events.last().unwrap().as_ref().unwrap_err();
        assert_eq!(error.category(), category, "{}: {error}", &body[..body.len().min(60)]);
        assert!(events.iter().rev().skip(1).all(Result::is_ok), "a failure is the last");
    }
}

#[tokio::test]
async fn a_silent_stream_is_given_up() {
    let url = peer(old_card(), |_| {
        (StatusCode::OK, SSE, Body::from_stream(futures::stream::pending::<Result<&[u8], std::io::Error>>()))
    })
    .await;
    let options = ClientOptions { idle_timeout: Duration::from_millis(100), ..ClientOptions::default() };
    let client = A2aClient::connect(&url, reqwest::Client::new(), options).await.unwrap();
    let error = client.stream(ask("x")).await.unwrap().next().await.unwrap().unwrap_err();
    assert_eq!(error.category(), "idle", "{error}");
}

#[tokio::test]
async fn each_way_not_to_answer_has_its_name() {
    type Answer = (StatusCode, &'static str, &'static str);
    let cases: [(Answer, &str, &str); 6] = [
        ((StatusCode::BAD_GATEWAY, "text/html", "<h1>upstream is\ngone"), "status", "502"),
        ((StatusCode::UNAUTHORIZED, "text/plain", "who are you"), "denied", "who are you"),
        (
            (
                StatusCode::PAYLOAD_TOO_LARGE,
                "application/json",
                r#"{"error":{"code":-32600,"message":"big"}}"#,
            ),
            "remote",
            "big (-32600)",
        ),
        ((StatusCode::OK, "application/json", "not json"), "protocol", "not json"),
        ((StatusCode::OK, "application/json", r#"{"jsonrpc":"2.0","id":1}"#), "protocol", "without result"),
        (
            (StatusCode::OK, "application/json", r#"{"result":{"kind":"task","status":{}}}"#),
            "protocol",
            "state",
        ),
    ];
    for ((status, content_type, body), category, says) in cases {
        let url = peer(old_card(), move |_| (status, content_type, Body::from(body))).await;
        let client =
            A2aClient::connect(&url, reqwest::Client::new(), ClientOptions::default()).await.unwrap();
        let sent = client.send(ask("x")).await.unwrap_err();
        let streamed = client.stream(ask("x")).await.err().unwrap();
        for error in [sent, streamed] {
            assert_eq!(error.category(), category, "{body}: {error}");
            assert!(error.to_string().contains(says), "{body}: {error}");
        }
    }
}

#[tokio::test]
async fn a_stream_answered_with_plain_json_is_one_event() {
    let body = r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"message","role":"agent","messageId":"m","parts":[{"kind":"text","text":"hi"}]}}"#;
    let url = peer(old_card(), move |_| (StatusCode::OK, "application/json", Body::from(body))).await;
    let client = A2aClient::connect(&url, reqwest::Client::new(), ClientOptions::default()).await.unwrap();
    let events = all(client.stream(ask("x")).await.unwrap()).await;
    assert!(
        matches!(&events[..], [StreamEvent { event: Event::Message(message), .. }] if message.text() == "hi")
    );
    let Reply::Message(message) = client.send(ask("x")).await.unwrap() else { panic!() };
    assert_eq!(message.text(), "hi");
}

#[tokio::test]
async fn the_token_is_sent_and_never_shown() {
    let url = peer(old_card(), |headers| {
        let known = headers.get("authorization").is_some_and(|value| value == "Bearer s3cret");
        let status = if known { StatusCode::IM_A_TEAPOT } else { StatusCode::UNAUTHORIZED };
        (status, "text/plain", Body::empty())
    })
    .await;
    let options = ClientOptions { bearer: Some("s3cret".to_owned().into()), ..ClientOptions::default() };
    let client = A2aClient::connect(&url, reqwest::Client::new(), options).await.unwrap();
    let error = client.get("x", None).await.unwrap_err();
    assert!(error.to_string().contains("418"), "{error}");
    assert!(!format!("{client:?} {error:?}").contains("s3cret"));
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_a_failed_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let connect =
        |url: String| A2aClient::connect(url.leak(), reqwest::Client::new(), ClientOptions::default());
    let error = connect(format!("http://user:hidden@{address}/")).await.unwrap_err();
    assert_eq!(error.category(), "connect", "{error:?}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert!(!error.to_string().contains("hidden"), "{error}");
    for bad in ["no address", "ftp://x/", "/relative"] {
        assert_eq!(connect(bad.to_owned()).await.unwrap_err().category(), "base_url", "{bad}");
    }
}

#[tokio::test]
async fn tls_with_a_peer_that_has_none_is_a_tls_failure() {
    let server = start().await;
    let url = server.url.replace("http://", "https://");
    let error = A2aClient::connect(&url, reqwest::Client::new(), ClientOptions::default()).await.unwrap_err();
    assert_eq!(error.category(), "tls", "{error:?}");
}

#[tokio::test]
async fn two_readers_of_one_task_see_the_same() {
    let server = start().await;
    let client = client(&server, ClientOptions::default()).await;
    let first = client.stream(ask("hold")).await.unwrap();
    eventually(|| server.worker.log("t1").is_some()).await;
    let second = client.subscribe("t1", Some(0)).await.unwrap();
    client.cancel("t1").await.unwrap();
    assert_eq!(all(first).await, all(second).await);
}
