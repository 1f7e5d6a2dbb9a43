//! What clients may take up, with limits small enough to reach.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Limits, serve};

const ASK: &[u8] = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n";

const GENEROUS: Limits = Limits {
    connections: 8,
    wait: Duration::from_mins(1),
    head_time: Duration::from_mins(1),
    head_bytes: 16 << 10,
    stall_time: Duration::from_mins(1),
};

struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

async fn start(routes: Router, limits: Limits) -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let serving = tokio::spawn(serve(listener, routes, limits, stop.clone()));
    Server { address, stop, serving }
}

fn hello() -> Router {
    Router::new().route("/", get(async || "hello"))
}

impl Server {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends these bytes and reads until the server ends the connection.
    async fn sent(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        rest(&mut stream).await
    }
}

/// Reads what there is until it ends in the words.
async fn until(stream: &mut TcpStream, words: &str) {
    let mut read = String::new();
    while !read.ends_with(words) {
        let mut piece = [0; 1024];
        let length = stream.read(&mut piece).await.unwrap();
        assert!(length > 0, "the connection ended after {read:?}");
        read.push_str(std::str::from_utf8(&piece[..length]).unwrap());
    }
}

/// What comes until the connection ends; a reset is an end too.
async fn rest(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read).await;
    String::from_utf8_lossy(&read).into_owned()
}

#[tokio::test]
async fn a_connection_that_asks_nothing_or_never_ends_its_head_is_closed() {
    let limits = Limits { head_time: Duration::from_millis(50), ..GENEROUS };
    let server = start(hello(), limits).await;
    for sent in [&b""[..], b"GET / HTTP/1.1\r\nhost: he"] {
        let answer = server.sent(sent).await;
        assert!(!answer.contains("hello"), "{answer}");
    }
    let mut idle = server.connect().await;
    idle.write_all(ASK).await.unwrap();
    until(&mut idle, "hello").await;
    assert_eq!(rest(&mut idle).await, "", "it may be idle for as long as a head may take");
}

#[tokio::test]
async fn a_head_above_the_limit_is_refused_and_one_below_is_not() {
    let server = start(hello(), GENEROUS).await;
    let with = |bytes: usize| {
        format!("GET / HTTP/1.1\r\nhost: here\r\nconnection: close\r\nx-long: {}\r\n\r\n", "x".repeat(bytes))
    };
    assert!(server.sent(with(12 << 10).as_bytes()).await.ends_with("hello"));
    assert!(server.sent(with(20 << 10).as_bytes()).await.starts_with("HTTP/1.1 431 "));
}

#[tokio::test]
async fn http_2_without_a_handshake_ends_at_once() {
    let server = start(hello(), GENEROUS).await;
    let answer = server.sent(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    assert!(!answer.contains("hello"), "{answer}");
}

#[tokio::test]
async fn beyond_the_limit_health_checks_are_answered_and_others_get_503() {
    let routes = hello().route("/health", get(async || "well"));
    let limits = Limits { connections: 1, wait: Duration::from_millis(20), ..GENEROUS };
    let server = start(routes, limits).await;
    let mut only = server.connect().await;
    only.write_all(ASK).await.unwrap();
    until(&mut only, "hello").await;
    let mut probe = server.connect().await;
    probe.write_all(b"GET /health HTTP/1.1\r\nhost: here\r\n\r\n").await.unwrap();
    until(&mut probe, "well").await;
    let refused = server.sent(ASK).await;
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after: 1"), "{refused}");
}

#[tokio::test]
async fn a_request_beyond_the_limit_waits_for_a_place() {
    let server = start(hello(), Limits { connections: 2, ..GENEROUS }).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    for stream in [&mut first, &mut second] {
        stream.write_all(ASK).await.unwrap();
        until(stream, "hello").await;
    }
    let mut third = server.connect().await;
    third.write_all(ASK).await.unwrap();
    first.write_all(ASK).await.unwrap();
    until(&mut first, "hello").await;
    let mut byte = [0; 1];
    let early = third.try_read(&mut byte).map_err(|error| error.kind());
    assert_eq!(early, Err(std::io::ErrorKind::WouldBlock));
    drop(second);
    until(&mut third, "hello").await;
}

#[tokio::test]
async fn a_stop_ends_what_is_idle_and_lets_answers_end() {
    let go_on = std::sync::Arc::new(Notify::new());
    let end = go_on.clone();
    let answer = async move || {
        let second = futures::stream::once(async move {
            end.notified().await;
            "second"
        });
        let pieces = futures::stream::iter(["first"]).chain(second);
        Body::from_stream(pieces.map(Ok::<_, std::io::Error>))
    };
    let server = start(Router::new().route("/", get(answer)), GENEROUS).await;
    let (mut busy, mut idle) = (server.connect().await, server.connect().await);
    busy.write_all(ASK).await.unwrap();
    until(&mut busy, "first\r\n").await;
    server.stop.cancel();
    assert_eq!(rest(&mut idle).await, "");
    assert!(!server.serving.is_finished());
    go_on.notify_one();
    assert!(rest(&mut busy).await.contains("second"));
    server.serving.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[test]
fn few_files_leave_room_for_connections_and_for_the_rest() {
    for (files, expected) in
        [(64, 16), (256, 112), (512, 240), (1024, 496), (usize::MAX, super::MOST_CONNECTIONS)]
    {
        assert_eq!(super::connections(files), expected, "{files}");
    }
}

#[test]
fn the_limits_fit_what_the_process_may_open() {
    let limits = Limits::fitting();
    assert!((1..=super::MOST_CONNECTIONS).contains(&limits.connections), "{limits:?}");
}
