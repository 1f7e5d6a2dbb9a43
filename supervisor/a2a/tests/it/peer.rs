//! A peer of which every byte is written by the test, and a task that it can stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request that came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// Names are in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn last(&self) -> Option<usize> {
        self.headers.get("last-event-id")?.parse().ok()
    }

    pub(crate) fn is_card(&self) -> bool {
        self.path.contains("/.well-known/")
    }
}

/// What the peer does about a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Answers with status, further header lines and a body.
    Whole(u16, &'static str, String),
    /// Streams in chunks of a size, then ends.
    Stream {
        body: String,
        chunk: usize,
        end: End,
    },
    /// Says nothing and keeps the connection.
    Silent,
    HangUp,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// As HTTP wants it.
    Close,
    /// In the middle of the body.
    Break,
    /// Not at all.
    Stall,
}

impl Answer {
    pub(crate) fn json(body: &Value) -> Self {
        Self::Whole(200, "content-type: application/json\r\n", body.to_string())
    }

    pub(crate) fn result(result: &Value) -> Self {
        Self::json(&json!({"jsonrpc": "2.0", "id": 1, "result": result}))
    }

    pub(crate) fn error(code: i64) -> Self {
        Self::json(&json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}}))
    }

    pub(crate) fn stream(body: impl Into<String>, end: End) -> Self {
        Self::Stream { body: body.into(), chunk: usize::MAX, end }
    }
}

type Script = Arc<dyn Fn(&Request) -> Answer + Send + Sync>;

/// A running peer; stops when dropped.
pub(crate) struct Peer {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    server: JoinHandle<()>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Peer {
    /// Answers each request as `script` says, the card included.
    pub(crate) async fn raw(script: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), script)
    }

    /// The same on a port of the caller's.
    pub(crate) fn on(
        listener: TcpListener,
        script: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (seen, script): (_, Script) = (Arc::clone(&requests), Arc::new(script));
        let server = tokio::spawn(async move {
            loop {
                let Ok((socket, _)) = listener.accept().await else { return };
                tokio::spawn(serve(socket, Arc::clone(&seen), Arc::clone(&script)));
            }
        });
        Self { url, requests, server }
    }

    /// Serves a card of a version and answers every call as `script` says.
    pub(crate) async fn start(
        version: caipe_a2a::ProtocolVersion,
        script: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let card = card(version);
        Self::raw(move |request| if request.is_card() { Answer::json(&card) } else { script(request) }).await
    }

    pub(crate) fn calls(&self) -> Vec<Request> {
        self.requests.lock().unwrap().iter().filter(|request| !request.is_card()).cloned().collect()
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        self.calls().iter().map(|call| call.method().to_owned()).collect()
    }
}

async fn serve(mut socket: TcpStream, seen: Arc<Mutex<Vec<Request>>>, script: Script) {
    // Small pieces must not wait for each other.
    let _ = socket.set_nodelay(true);
    while let Some(request) = read(&mut socket).await {
        seen.lock().unwrap().push(request.clone());
        let written = match script(&request) {
            Answer::Whole(status, headers, body) => {
                let size = body.len();
                let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {size}\r\n\r\n");
                socket.write_all(format!("{head}{body}").as_bytes()).await
            }
            Answer::Stream { body, chunk, end } => stream(&mut socket, body.as_bytes(), chunk, end).await,
            Answer::Silent => std::future::pending().await,
            Answer::HangUp => return,
        };
        if written.is_err() {
            return;
        }
    }
}

async fn read(socket: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let split = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        socket.read_buf(&mut bytes).await.ok().filter(|size| *size > 0)?;
    };
    let head = String::from_utf8(bytes[..split].to_vec()).ok()?;
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let header =
        |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: HashMap<_, _> = lines.filter_map(header).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while bytes.len() < split + 4 + length {
        socket.read_buf(&mut bytes).await.ok().filter(|size| *size > 0)?;
    }
    let body = serde_json::from_slice(&bytes[split + 4..]).unwrap_or(Value::Null);
    Some(Request { path, headers, body })
}

async fn stream(socket: &mut TcpStream, body: &[u8], chunk: usize, end: End) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    for piece in body.chunks(chunk.max(1)) {
        socket.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
        socket.write_all(piece).await?;
        socket.write_all(b"\r\n").await?;
    }
    match end {
        End::Close => socket.write_all(b"0\r\n\r\n").await,
        End::Break => Err(std::io::ErrorKind::ConnectionAborted.into()),
        End::Stall => std::future::pending().await,
    }
}

/// A card of an agent that streams.
pub(crate) fn card(version: caipe_a2a::ProtocolVersion) -> Value {
    let mut card = json!({"name": "Peer", "capabilities": {"streaming": true}});
    match version {
        caipe_a2a::ProtocolVersion::V0_3 => {
            card["protocolVersion"] = json!("0.3.0");
            card["url"] = json!("/");
        }
        caipe_a2a::ProtocolVersion::V1_0 => {
            card["supportedInterfaces"] =
                json!([{"url": "/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
        }
    }
    card
}

/// `2 3 4 `, up to a number.
pub(crate) fn numbers(last: usize) -> String {
    (2..=last).flat_map(|number| [number.to_string(), " ".to_owned()]).collect()
}

/// A task that counts: event 1 is the task, the last one completes it, each between adds `N `.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counting {
    pub(crate) version: caipe_a2a::ProtocolVersion,
    pub(crate) events: usize,
    pub(crate) numbered: bool,
}

impl Counting {
    fn is_old(self) -> bool {
        self.version == caipe_a2a::ProtocolVersion::V0_3
    }

    fn state(self, state: &str) -> String {
        if self.is_old() { state.to_owned() } else { format!("TASK_STATE_{}", state.to_uppercase()) }
    }

    /// The task as it is after event `seq`.
    pub(crate) fn task(self, seq: usize) -> Value {
        let text = numbers(seq.min(self.events - 1));
        let state = match seq {
            0 | 1 => "submitted",
            seq if seq >= self.events => "completed",
            _ => "working",
        };
        let mut task = json!({"id": "t", "contextId": "c", "status": {"state": self.state(state)}});
        if !text.is_empty() {
            task["artifacts"] = json!([{"artifactId": "a", "parts": [{"text": text}]}]);
        }
        task
    }

    fn wrapped(self, member: &str, mut event: Value) -> Value {
        let kind = match member {
            "statusUpdate" => "status-update",
            "artifactUpdate" => "artifact-update",
            other => other,
        };
        if self.is_old() {
            event["kind"] = json!(kind);
            return event;
        }
        json!({member: event})
    }

    fn event(self, seq: usize) -> Value {
        let mut update = json!({"taskId": "t", "contextId": "c"});
        if seq == 1 {
            return self.wrapped("task", self.task(1));
        }
        if seq == self.events {
            update["status"] = json!({"state": self.state("completed")});
            if self.is_old() {
                update["final"] = json!(true);
            }
            return self.wrapped("statusUpdate", update);
        }
        update["append"] = json!(seq > 2);
        update["artifact"] = json!({"artifactId": "a", "parts": [{"text": format!("{seq} ")}]});
        self.wrapped("artifactUpdate", update)
    }

    fn frame(self, seq: usize, event: &Value) -> String {
        let id = if self.numbered { format!("id: {seq}\r\n") } else { String::new() };
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": event});
        format!("{id}data: {answer}\r\n\r\n")
    }

    /// The frames of the events after `after`.
    pub(crate) fn frames(self, after: usize) -> Vec<String> {
        (after + 1..=self.events).map(|seq| self.frame(seq, &self.event(seq))).collect()
    }

    /// The frame of the task as it is after event `seq`.
    pub(crate) fn snapshot(self, seq: usize) -> String {
        self.frame(seq, &self.wrapped("task", self.task(seq)))
    }
}

/// Passes a connection on, and cuts it off after so many bytes of the answer.
pub(crate) async fn relay(near: TcpStream, far: TcpStream, bytes: u64) {
    let (mut from_client, mut to_client) = near.into_split();
    let (from_server, mut to_server) = far.into_split();
    let up = tokio::io::copy(&mut from_client, &mut to_server);
    let mut limited = from_server.take(bytes);
    let down = tokio::io::copy(&mut limited, &mut to_client);
    tokio::select! {
        _ = up => {}
        _ = down => {}
    }
}
