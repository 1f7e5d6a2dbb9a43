//! What a call has beyond its parameters: headers, extensions, deadlines, and an end that the caller wants.

use std::time::Duration;

use caipe_a2a::ProtocolVersion::{V0_3, V1_0};
use caipe_a2a::client::{A2aClient, CallOptions, ClientError, ClientOptions, Reconnect};
use caipe_a2a::model::{Message, SendMessageRequest, TaskState};
use futures::StreamExt;

use crate::agent::{eventually, start};
use crate::peer::{Answer, Counting, End, Peer};

fn ask(text: &str) -> SendMessageRequest {
    SendMessageRequest::new(Message::user("m1", text))
}

async fn connect(url: &str, options: ClientOptions) -> A2aClient {
    A2aClient::connect(url, reqwest::Client::new(), options).await.unwrap()
}

fn call() -> CallOptions {
    CallOptions::default()
}

#[tokio::test]
async fn each_request_of_a_call_carries_its_headers_and_extensions() {
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (version, extensions) in [(V0_3, "x-a2a-extensions"), (V1_0, "a2a-extensions")] {
        let task = Counting { version, events: 4, numbered: true };
        let peer = Peer::start(version, move |request| match request.last() {
            None => Answer::stream(task.frames(0)[..2].concat(), End::Break),
            Some(last) => Answer::stream(task.frames(last).concat(), End::Close),
        })
        .await;
        let reconnect = Reconnect { first_wait: Duration::from_millis(1), ..Reconnect::default() };
        let options =
            ClientOptions { extensions: vec!["urn:a".to_owned()], reconnect, ..ClientOptions::default() };
        let call = call()
            .header("traceparent", trace)
            .and_then(|call| call.header("X-Key", "k"))
            .and_then(|call| call.header("content-type", "text/plain"))
            .unwrap()
            .extension("urn:b")
            .extension("urn:a");
        let client = connect(&peer.url, options).await;
        let events: Vec<_> = client.with(call).stream(ask("x")).await.unwrap().collect().await;
        assert_eq!(events.len(), 4);
        assert!(client.get("t", None).await.is_err(), "the peer answers with a stream only");
        let calls = peer.calls();
        let header = |at: usize, name: &str| calls[at].headers.get(name).map(String::as_str);
        for at in [0, 1] {
            assert_eq!(header(at, "traceparent"), Some(trace));
            assert_eq!(header(at, "x-key"), Some("k"));
            assert_eq!(header(at, extensions), Some("urn:a, urn:b"));
            assert_eq!(header(at, "content-type"), Some("application/json"), "the protocol's own wins");
            assert_eq!(header(at, "a2a-version"), (version == V1_0).then_some("1.0"));
        }
        assert_eq!((header(2, "traceparent"), header(2, extensions)), (None, Some("urn:a")));
    }
}

#[test]
fn headers_that_http_does_not_allow_are_refused_and_values_never_shown() {
    for (name, value) in [("na me", "v"), ("", "v"), ("x", "a\nb")] {
        let error = call().header(name, value).unwrap_err();
        assert!(matches!(error, ClientError::Header(_)), "{error}");
    }
    let shown = format!("{:?}", call().header("x-key", "s3cret").unwrap());
    assert!(shown.contains("x-key") && !shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn a_deadline_ends_whatever_is_under_way() {
    let peer = Peer::start(V1_0, |request| match request.method() {
        "SendStreamingMessage" => Answer::stream(
            "id: 1\ndata: {\"result\":{\"task\":{\"id\":\"t\",\"contextId\":\"c\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}}\n\n",
            End::Stall,
        ),
        _ => Answer::Silent,
    })
    .await;
    let client = connect(&peer.url, ClientOptions::default()).await;
    let short = || client.with(call().within(Duration::from_millis(150)));
    let events: Vec<_> = short().stream(ask("x")).await.unwrap().collect().await;
    assert_eq!(events.len(), 2);
    let errors = [
        events.into_iter().last().unwrap().unwrap_err(),
        short().send(ask("x")).await.unwrap_err(),
        short().get("t", None).await.unwrap_err(),
        short().subscribe("t", None).await.unwrap_err(),
        client.with(call().within(Duration::ZERO)).get("t", None).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, ClientError::Deadline), "{error}");
    }
    // A limit of the client's own that comes first keeps its name.
    let options = ClientOptions { timeout: Duration::from_millis(50), ..ClientOptions::default() };
    let client = connect(&peer.url, options).await.with(call().within(Duration::from_mins(1)));
    assert_eq!(client.get("t", None).await.unwrap_err().category(), "timeout");
}

#[tokio::test]
async fn a_deadline_bounds_reconnecting() {
    let task = Counting { version: V1_0, events: 4, numbered: true };
    let peer = Peer::start(V1_0, move |request| match request.method() {
        "SendStreamingMessage" => Answer::stream(task.frames(0)[..2].concat(), End::Break),
        _ => Answer::HangUp,
    })
    .await;
    let reconnect =
        Reconnect { first_wait: Duration::from_millis(20), attempts: 1000, ..Reconnect::default() };
    let client = connect(&peer.url, ClientOptions { reconnect, ..ClientOptions::default() }).await;
    let stream = client.with(call().within(Duration::from_millis(300))).stream(ask("x")).await.unwrap();
    let events: Vec<_> = stream.collect().await;
    assert!(matches!(events.last(), Some(Err(ClientError::Deadline))), "{events:?}");
    assert!(peer.calls().len() > 1);
}

#[tokio::test]
async fn a_stream_can_stop_its_task() {
    let server = start().await;
    for version in [V0_3, V1_0] {
        let options = ClientOptions { version: Some(version), ..ClientOptions::default() };
        let client = connect(&server.url, options).await;
        // The deadline of the call does not keep anybody from stopping it.
        let mut stream =
            client.with(call().within(Duration::from_mins(5))).stream(ask("hold")).await.unwrap();
        assert!(matches!(stream.cancel().await, Err(ClientError::NoTask)));
        stream.next().await.unwrap().unwrap();
        let task = stream.task_id().unwrap().to_owned();
        assert_eq!(stream.cancel().await.unwrap().status.state, TaskState::Canceled);
        let rest: Vec<_> = stream.collect().await;
        assert_eq!(rest.last().unwrap().as_ref().unwrap().event.state(), Some(TaskState::Canceled));
        assert_eq!(server.worker.log(&task).unwrap().state(), TaskState::Canceled);
    }
}

#[tokio::test]
async fn a_task_is_stopped_when_nobody_waits_for_it_any_more() {
    let server = start().await;
    let client = connect(&server.url, ClientOptions::default()).await;
    let state = |task: &str| server.worker.log(task).map(|log| log.state());

    // Before its first event was read, and after.
    drop(client.stream(ask("hold")).await.unwrap().cancel_on_drop());
    eventually(|| state("t1") == Some(TaskState::Canceled)).await;
    let mut stream = client.stream(ask("hold")).await.unwrap().cancel_on_drop();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    eventually(|| state("t2") == Some(TaskState::Canceled)).await;

    let stream = client.stream(ask("hold")).await.unwrap();
    let guard = client.cancel_on_drop("t3");
    assert_eq!(state("t3"), Some(TaskState::Working));
    drop(guard);
    eventually(|| state("t3") == Some(TaskState::Canceled)).await;
    drop(stream);
}

#[tokio::test]
async fn a_task_that_ended_or_was_let_go_is_not_stopped() {
    let server = start().await;
    let client = connect(&server.url, ClientOptions::default()).await;
    client.cancel_on_drop("t1").disarm();
    let stream = client.stream(ask("count 1")).await.unwrap().cancel_on_drop();
    let mut stream = stream;
    while stream.next().await.is_some() {}
    assert!(stream.next().await.is_none(), "it may be asked again");
    drop(stream);
    drop(client.follow(ask("never sent")).cancel_on_drop());
    let peer = Peer::start(V1_0, |_| Answer::Silent).await;
    drop(connect(&peer.url, ClientOptions::default()).await.follow(ask("x")));
    assert_eq!(peer.calls().len(), 0, "nothing is sent before somebody reads");
    assert_eq!(client.get("t1", None).await.unwrap().status.state, TaskState::Completed);
}
