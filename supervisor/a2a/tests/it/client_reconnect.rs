//! A stream that is followed through lost connections.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use caipe_a2a::ProtocolVersion::{self, V0_3, V1_0};
use caipe_a2a::client::{
    A2aClient, ClientError, ClientOptions, EventStream, Followed, Reconnect, StreamEvent,
};
use caipe_a2a::model::{Event, Message, SendMessageRequest, TaskState};
use futures::StreamExt;
use proptest::prelude::*;
use serde_json::json;

use crate::peer::{Answer, Counting, End, Peer, Request, card, numbers};

fn quick() -> ClientOptions {
    let reconnect = Reconnect {
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_millis(4),
        poll: Duration::from_millis(1),
        ..Reconnect::default()
    };
    ClientOptions { reconnect, ..ClientOptions::default() }
}

async fn connect(peer: &Peer, options: ClientOptions) -> A2aClient {
    A2aClient::connect(&peer.url, reqwest::Client::new(), options).await.unwrap()
}

fn ask() -> SendMessageRequest {
    SendMessageRequest::new(Message::user("m1", "count"))
}

async fn read(stream: EventStream) -> Vec<Result<StreamEvent, ClientError>> {
    tokio::time::timeout(Duration::from_secs(20), stream.collect()).await.expect("the stream ends")
}

/// The text of a task's artifact as a reader puts it together.
fn folded(events: &[StreamEvent]) -> String {
    let mut text = String::new();
    for event in events {
        match &event.event {
            Event::Task(task) => {
                text = task.artifacts.first().map(caipe_a2a::model::Artifact::text).unwrap_or_default();
            }
            Event::ArtifactUpdate(update) => text.push_str(&update.artifact.text()),
            Event::StatusUpdate(_) | Event::Message(_) => {}
        }
    }
    text
}

fn expected_text(task: Counting) -> String {
    numbers(task.events - 1)
}

/// Where a connection ends, in bytes, and how.
type Cut = (usize, End);

/// Streams a counting task; connection `n` ends as `cuts[n]` says, later ones not before the task does.
async fn counting(task: Counting, chunk: usize, cuts: Vec<Cut>) -> Peer {
    let connection = AtomicUsize::new(0);
    Peer::start(task.version, move |request| {
        if request.method() == "tasks/get" {
            return Answer::result(&task.task(task.events));
        }
        let after = request.last().unwrap_or(0);
        let opening = if after > 0 { task.snapshot(after) } else { String::new() };
        let body = opening + &task.frames(after).concat();
        match cuts.get(connection.fetch_add(1, Ordering::Relaxed)) {
            Some((at, end)) if *at < body.len() => Answer::Stream { body: cut(&body, *at), chunk, end: *end },
            _ => Answer::Stream { body, chunk, end: End::Close },
        }
    })
    .await
}

/// Cuts between characters only, for the peer writes text.
fn cut(body: &str, at: usize) -> String {
    body.get(..at).unwrap_or(body).to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]
    #[test]
    fn wherever_connections_break_the_reader_sees_each_event_once(
        new in any::<bool>(),
        chunk in 1_usize..400,
        first in 0_usize..1500,
        rest in proptest::collection::vec((0_usize..2500, any::<bool>()), 0..4),
        closes in any::<bool>(),
    ) {
        let version = if new { V1_0 } else { V0_3 };
        let task = Counting { version, events: 9, numbered: true };
        // Without the first event, nobody knows which task to follow.
        let first = task.frames(0)[0].len() + first;
        let end = |closes| if closes { End::Close } else { End::Break };
        let mut cuts = vec![(first, end(closes))];
        cuts.extend(rest.iter().map(|(at, closes)| (*at, end(*closes))));
        let events = runtime().block_on(async {
            let peer = counting(task, chunk, cuts).await;
            let client = connect(&peer, quick()).await;
            let events = read(client.stream(ask()).await.unwrap()).await;
            let resent = peer.methods().iter().skip(1).any(|method| method.to_lowercase().contains("message"));
            assert!(!resent, "a message is sent once: {:?}", peer.methods());
            events
        });
        let events: Vec<_> = events.into_iter().map(Result::unwrap).collect();
        let numbers: Vec<_> = events.iter().map(|event| event.seq.unwrap()).collect();
        prop_assert_eq!(numbers, (1..=9).collect::<Vec<u64>>());
        prop_assert!(events.iter().all(|event| !event.resumed));
        prop_assert_eq!(folded(&events), expected_text(task));
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[tokio::test]
async fn a_server_that_has_forgotten_what_was_missed_sends_the_task_anew() {
    for version in [V0_3, V1_0] {
        let task = Counting { version, events: 9, numbered: true };
        let peer = Peer::start(version, move |request| {
            if request.last().is_none() {
                return Answer::stream(task.frames(0)[..3].concat(), End::Break);
            }
            Answer::stream(task.snapshot(6) + &task.frames(6).concat(), End::Close)
        })
        .await;
        let client = connect(&peer, quick()).await;
        let events: Vec<_> =
            read(client.stream(ask()).await.unwrap()).await.into_iter().map(Result::unwrap).collect();
        let seen: Vec<_> = events.iter().map(|event| (event.seq.unwrap(), event.resumed)).collect();
        let expected = [(1, false), (2, false), (3, false), (6, true), (7, false), (8, false), (9, false)];
        assert_eq!(seen, expected);
        assert_eq!(folded(&events), expected_text(task));
        assert_eq!(peer.calls()[1].last(), Some(3));
    }
}

#[tokio::test]
async fn without_numbers_the_task_itself_tells_what_was_missed() {
    // 1.0 opens with the task; 0.3 need not, so it is asked until the task ends. A stream beside that could repeat
    // what the task already has.
    for (version, methods) in [
        (V0_3, &["message/stream", "tasks/get", "tasks/get"][..]),
        (V1_0, &["SendStreamingMessage", "SubscribeToTask"]),
    ] {
        let task = Counting { version, events: 9, numbered: false };
        let asked = AtomicUsize::new(0);
        let peer = Peer::start(version, move |request| match request.method() {
            "message/stream" | "SendStreamingMessage" => {
                Answer::stream(task.frames(0)[..3].concat(), End::Break)
            }
            "tasks/get" => Answer::result(&task.task([6, 9][asked.fetch_add(1, Ordering::Relaxed).min(1)])),
            "tasks/resubscribe" => Answer::stream(task.frames(4).concat(), End::Close),
            _ => Answer::stream(task.snapshot(6) + &task.frames(6).concat(), End::Close),
        })
        .await;
        let client = connect(&peer, quick()).await;
        let events: Vec<_> =
            read(client.stream(ask()).await.unwrap()).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(events.iter().position(|event| event.resumed), Some(3), "{events:?}");
        assert_eq!(folded(&events), expected_text(task));
        assert_eq!(peer.methods(), methods);
    }
}

#[tokio::test]
async fn a_task_that_ended_meanwhile_is_looked_at() {
    let in_stream = Answer::stream("data: {\"error\":{\"code\":-32001,\"message\":\"no\"}}\n\n", End::Close);
    for (version, refusal) in [
        (V0_3, Answer::error(-32001)),
        (V0_3, Answer::error(-32601)),
        (V0_3, in_stream.clone()),
        (V1_0, Answer::error(-32004)),
        (V1_0, in_stream),
    ] {
        let task = Counting { version, events: 6, numbered: true };
        let peer = Peer::start(version, move |request| match request.method() {
            "message/stream" | "SendStreamingMessage" => {
                Answer::stream(task.frames(0)[..3].concat(), End::Break)
            }
            "tasks/get" | "GetTask" => Answer::result(&task.task(6)),
            _ => refusal.clone(),
        })
        .await;
        let client = connect(&peer, quick()).await;
        let events: Vec<_> =
            read(client.stream(ask()).await.unwrap()).await.into_iter().map(Result::unwrap).collect();
        let last = events.last().unwrap();
        assert_eq!((last.event.state(), last.resumed), (Some(TaskState::Completed), true));
        assert_eq!(folded(&events), expected_text(task));
        assert_eq!(peer.calls().len(), 3);
    }
}

#[tokio::test]
async fn a_task_that_nobody_may_follow_is_asked_for_until_it_ends() {
    let task = Counting { version: V1_0, events: 6, numbered: true };
    let looks = AtomicUsize::new(0);
    let peer = Peer::start(V1_0, move |request| match request.method() {
        "SendStreamingMessage" => Answer::stream(task.frames(0)[..3].concat(), End::Break),
        "GetTask" => Answer::result(&task.task([4, 4, 5, 6][looks.fetch_add(1, Ordering::Relaxed).min(3)])),
        _ => Answer::error(-32601),
    })
    .await;
    let client = connect(&peer, quick()).await;
    let events: Vec<_> =
        read(client.stream(ask()).await.unwrap()).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(events.len(), 6, "the same task is not shown twice: {events:?}");
    assert_eq!(folded(&events), expected_text(task));
}

/// An agent that does not stream: its card says so.
async fn silent_peer(
    version: ProtocolVersion,
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> Peer {
    let mut card = card(version);
    card["capabilities"]["streaming"] = json!(false);
    Peer::raw(move |request| if request.is_card() { Answer::json(&card) } else { answer(request) }).await
}

#[tokio::test]
async fn an_agent_that_does_not_stream_is_asked_for_the_task_at_once() {
    // A blocking call has no task to cancel until it returns.
    for (version, wish) in [(V0_3, json!({"blocking": false})), (V1_0, json!({"returnImmediately": true}))] {
        let task = Counting { version, events: 6, numbered: false };
        let peer = silent_peer(version, move |request| match request.method() {
            "message/send" => Answer::result(&task.task(1)),
            "SendMessage" => Answer::result(&json!({"task": task.task(1)})),
            _ => Answer::result(&task.task(6)),
        })
        .await;
        let client = connect(&peer, quick()).await;
        let events: Vec<_> = read(client.follow(ask())).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(folded(&events), expected_text(task));
        let (name, value) = wish.as_object().unwrap().iter().next().unwrap();
        assert_eq!(peer.calls()[0].body["params"]["configuration"][name], *value);
    }
}

#[tokio::test]
async fn an_agent_that_only_tells_the_task_again_is_given_up_in_time() {
    let task = Counting { version: V1_0, events: 6, numbered: false };
    let peer = Peer::start(V1_0, move |request| match request.method() {
        "SendStreamingMessage" => Answer::stream(task.frames(0)[..3].concat(), End::Break),
        _ => Answer::stream(task.snapshot(3), End::Break),
    })
    .await;
    let give_up_after = Duration::from_millis(100);
    let reconnect = Reconnect { attempts: u32::MAX, give_up_after, ..quick().reconnect };
    let options = ClientOptions { reconnect, ..quick() };
    let events = read(connect(&peer, options).await.stream(ask()).await.unwrap()).await;
    assert_eq!(events.last().unwrap().as_ref().unwrap_err().category(), "broken");
}

#[tokio::test]
async fn a_task_that_is_gone_is_the_agents_own_error() {
    let task = Counting { version: V1_0, events: 6, numbered: true };
    let peer = Peer::start(V1_0, move |request| match request.method() {
        "SendStreamingMessage" => Answer::stream(task.frames(0)[..3].concat(), End::Break),
        _ => Answer::error(-32001),
    })
    .await;
    let events = read(connect(&peer, quick()).await.stream(ask()).await.unwrap()).await;
    assert_eq!(events.len(), 4);
    let error = events[3].as_ref().unwrap_err();
    assert!(matches!(error, ClientError::Remote(error) if error.code == -32001), "{error}");
}

#[tokio::test]
async fn what_stays_broken_ends_with_the_last_failure() {
    let task = Counting { version: V1_0, events: 6, numbered: true };
    let start = move |again: Answer| {
        Peer::start(V1_0, move |request| match request.method() {
            "SendStreamingMessage" => Answer::stream(task.frames(0)[..3].concat(), End::Break),
            _ => again.clone(),
        })
    };
    let busy = Answer::Whole(503, "content-type: text/plain\r\n", "busy".to_owned());
    let forbidden = Answer::Whole(403, "www-authenticate: Bearer realm=\"x\"\r\n", String::new());
    let page = Answer::Whole(200, "content-type: text/html\r\n", "<h1>Welcome</h1>".to_owned());
    for (again, category, calls) in [
        (busy, "status", 6),
        (Answer::HangUp, "broken", 6),
        (Answer::stream(task.snapshot(3), End::Close), "cut", 6),
        (forbidden, "denied", 2),
        (page, "content_type", 2),
        (Answer::stream("id: 4\ndata: nonsense\n\n", End::Close), "protocol", 2),
    ] {
        let peer = start(again).await;
        let events = read(connect(&peer, quick()).await.stream(ask()).await.unwrap()).await;
        let error = events.last().unwrap().as_ref().unwrap_err();
        assert_eq!((error.category(), peer.calls().len()), (category, calls), "{error}");
        assert_eq!(events.len(), 4, "{category}");
    }
}

#[tokio::test]
async fn it_can_be_switched_off() {
    let task = Counting { version: V1_0, events: 6, numbered: true };
    let peer = counting(task, 100, vec![(task.frames(0)[..3].concat().len(), End::Break)]).await;
    let options = ClientOptions { reconnect: Reconnect::off(), ..ClientOptions::default() };
    let events = read(connect(&peer, options).await.stream(ask()).await.unwrap()).await;
    assert_eq!(events.last().unwrap().as_ref().unwrap_err().category(), "broken");
    assert_eq!(peer.calls().len(), 1);
}

#[tokio::test]
async fn a_silent_connection_is_taken_up_again() {
    let task = Counting { version: V1_0, events: 6, numbered: true };
    let peer = counting(task, 100, vec![(task.frames(0)[..3].concat().len(), End::Stall)]).await;
    let options = ClientOptions { idle_timeout: Duration::from_millis(100), ..quick() };
    let events = read(connect(&peer, options).await.stream(ask()).await.unwrap()).await;
    assert_eq!(
        events.into_iter().map(|event| event.unwrap().seq.unwrap()).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
}

#[tokio::test]
async fn silence_before_the_loss_does_not_count_against_the_tries() {
    let task = Counting { version: V1_0, events: 6, numbered: true };
    let peer = counting(task, 100, vec![(task.frames(0)[..3].concat().len(), End::Stall)]).await;
    let silent = Duration::from_secs(2);
    let reconnect = Reconnect { give_up_after: Duration::from_millis(1500), ..quick().reconnect };
    let options = ClientOptions { idle_timeout: silent, reconnect, ..ClientOptions::default() };
    let events = read(connect(&peer, options).await.stream(ask()).await.unwrap()).await;
    assert_eq!(
        events.into_iter().map(|event| event.unwrap().seq.unwrap()).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
}

#[tokio::test]
async fn a_message_that_may_have_arrived_is_never_sent_again() {
    let answers = [
        Answer::HangUp,
        Answer::Whole(503, "", "busy".to_owned()),
        Answer::stream("", End::Break),
        Answer::stream(": here\n\nid: 1\ndata: {\"resu", End::Break),
        Answer::Silent,
    ];
    for answer in answers {
        let what = format!("{answer:?}");
        let peer = Peer::start(V1_0, move |_| answer.clone()).await;
        let options = ClientOptions { idle_timeout: Duration::from_millis(200), ..quick() };
        let stream = connect(&peer, options.clone()).await.stream(ask()).await;
        let failed = match stream {
            Ok(stream) => read(stream).await.iter().all(Result::is_err),
            Err(_) => true,
        };
        let options = ClientOptions { answer_timeout: Duration::from_millis(200), ..options };
        assert!(failed && connect(&peer, options).await.send(ask()).await.is_err(), "{what}");
        assert_eq!(peer.calls().len(), 2, "{what}");
    }
}

#[tokio::test]
async fn a_message_is_sent_once_the_agent_can_be_reached() {
    let task = Counting { version: V1_0, events: 4, numbered: true };
    // A port that is taken although nobody listens on it yet.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let card = serde_json::json!({"name": "Late", "capabilities": {"streaming": true},
        "supportedInterfaces": [{"url": format!("http://{address}/"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
    let cards = Peer::raw(move |_| Answer::json(&card)).await;
    let client = connect(&cards, ClientOptions { follow_card_url: true, ..quick() }).await;
    let mut stream = client.follow(ask());
    let lost = stream.next_step().await.unwrap().unwrap();
    assert!(matches!(lost, Followed::Lost { attempt: 1, of: 5 }), "{lost:?}");
    drop(stream);

    let many_attempts = Reconnect { attempts: 10_000, ..quick().reconnect };
    let client =
        connect(&cards, ClientOptions { follow_card_url: true, reconnect: many_attempts, ..quick() }).await;
    let stream = tokio::spawn(async move { client.stream(ask()).await });
    let listener = socket.listen(16).unwrap();
    let peer = Peer::on(listener, move |_| Answer::stream(task.frames(0).concat(), End::Close));
    let events = read(stream.await.unwrap().unwrap()).await;
    assert_eq!(events.len(), 4);
    assert_eq!(peer.methods(), ["SendStreamingMessage"]);
}

#[tokio::test]
async fn a_message_that_is_refused_for_now_is_sent_again() {
    let task = Counting { version: V1_0, events: 4, numbered: true };
    let refusals = std::sync::atomic::AtomicUsize::new(0);
    let peer =
        Peer::start(V1_0, move |_| match refusals.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 | 1 => Answer::Whole(503, "retry-after: 0\r\nconnection: close\r\n", "stopping".to_owned()),
            _ => Answer::stream(task.frames(0).concat(), End::Close),
        })
        .await;
    let events = read(connect(&peer, quick()).await.stream(ask()).await.unwrap()).await;
    assert_eq!((events.len(), peer.calls().len()), (4, 3));
}

#[tokio::test]
async fn a_stream_that_ended_well_is_not_taken_up_again() {
    // After a final status, a bare message, and a question, whatever becomes of the connection.
    let waits =
        r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}"#;
    let message = r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}"#;
    for (event, end) in
        [(waits, End::Close), (waits, End::Break), (message, End::Close), (message, End::Break)]
    {
        let body = format!("data: {{\"result\":{event}}}\n\n");
        let peer = Peer::start(V1_0, move |_| Answer::stream(body.clone(), end)).await;
        let events = read(connect(&peer, quick()).await.stream(ask()).await.unwrap()).await;
        assert!(events.len() == 1 && events[0].is_ok(), "{events:?}");
        assert_eq!(peer.calls().len(), 1);
    }
}

#[tokio::test]
async fn a_waiting_task_that_is_answered_is_followed_through_a_broken_connection() {
    let waiting = r#"id: 4
data: {"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}}

"#;
    let task = Counting { version: V1_0, events: 6, numbered: true };
    let peer = Peer::start(V1_0, move |request| match request.method() {
        "SendStreamingMessage" => Answer::stream(waiting, End::Break),
        _ => Answer::stream(waiting.to_owned() + &task.frames(4).concat(), End::Close),
    })
    .await;
    let request = SendMessageRequest::new(Message::user("m1", "here").within("t", "c"));
    let events = read(connect(&peer, quick()).await.stream(request).await.unwrap()).await;
    assert_eq!(events.into_iter().map(|event| event.unwrap().seq.unwrap()).collect::<Vec<_>>(), [4, 5, 6]);
}

#[tokio::test]
async fn a_subscription_to_a_waiting_task_may_end_with_it() {
    for (version, body) in [
        (V0_3, r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"input-required"}}"#),
        (V1_0, r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}"#),
    ] {
        let body = format!("id: 4\ndata: {{\"result\":{body}}}\n\n");
        let peer = Peer::start(version, move |_| Answer::stream(body.clone(), End::Close)).await;
        let stream = connect(&peer, quick()).await.subscribe("t", None).await.unwrap();
        let events: Vec<_> = read(stream).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(events[0].event.state(), Some(TaskState::InputRequired));
        assert_eq!(peer.calls().len(), 1, "it is not taken up again");
    }
}

#[tokio::test]
async fn our_own_server_is_followed_in_both_versions() {
    let server = crate::agent::start().await;
    for version in [V0_3, V1_0] {
        let client = through(&server.url, version).await;
        let stream = client.stream(SendMessageRequest::new(Message::user("m1", "count 40"))).await.unwrap();
        let events: Vec<_> = read(stream).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(
            events.iter().map(|event| event.seq.unwrap()).collect::<Vec<_>>(),
            (1..=42).collect::<Vec<_>>()
        );
        assert!(events.iter().all(|event| !event.resumed));
    }
}

/// A client whose every connection to a server is cut after some bytes.
async fn through(server: &str, version: ProtocolVersion) -> A2aClient {
    let to = server.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (near, _) = listener.accept().await.unwrap();
            let far = tokio::net::TcpStream::connect(&to).await.unwrap();
            tokio::spawn(crate::peer::relay(near, far, 2500));
        }
    });
    let http = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
    let options = ClientOptions { version: Some(version), ..quick() };
    A2aClient::connect(&url, http, options).await.unwrap()
}
