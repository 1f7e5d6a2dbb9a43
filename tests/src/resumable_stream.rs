//! Streams with their events' numbers, in both versions of the protocol: for clients that lose their connection and resume.

use std::time::Duration;

use anyhow::{Result, ensure};
use caipe_a2a::event_id;
use serde_json::{Value, json};

use crate::supervisor::unique;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// The version that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 0.3.
    V0_3,
    /// 1.0.
    V1_0,
}

impl Version {
    const fn header(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    /// The task, if the event is one.
    pub fn task(self, event: &Value) -> Option<&Value> {
        self.member(event, "task", "task")
    }

    /// The update of an artifact, if the event is one.
    pub fn artifact_update(self, event: &Value) -> Option<&Value> {
        self.member(event, "artifact-update", "artifactUpdate")
    }

    fn member<'a>(self, event: &'a Value, kind: &str, name: &str) -> Option<&'a Value> {
        match self {
            Self::V0_3 => (event["kind"] == kind).then_some(event),
            Self::V1_0 => event.get(name),
        }
    }

    fn ask(self, text: &str) -> Value {
        let id = unique("message");
        match self {
            Self::V0_3 => {
                json!({"jsonrpc": "2.0", "id": "n", "method": "message/stream", "params": {"message":
                {"kind": "message", "role": "user", "messageId": id, "parts": [{"kind": "text", "text": text}]}}})
            }
            Self::V1_0 => json!({"jsonrpc": "2.0", "id": "n", "method": "SendStreamingMessage", "params":
                {"message": {"role": "ROLE_USER", "messageId": id, "parts": [{"text": text}]}}}),
        }
    }

    fn resume(self, task: &str) -> Value {
        let method = match self {
            Self::V0_3 => "tasks/resubscribe",
            Self::V1_0 => "SubscribeToTask",
        };
        json!({"jsonrpc": "2.0", "id": "n", "method": method, "params": {"id": task}})
    }
}

/// The URL of a server and the key for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The base URL.
    pub url: String,
    /// The bearer token.
    pub key: Option<String>,
}

impl From<&str> for Endpoint {
    fn from(url: &str) -> Self {
        Self { url: url.to_owned(), key: None }
    }
}

/// A stream that may break off at any byte.
#[derive(Debug)]
pub struct Connection {
    response: reqwest::Response,
    buffer: Vec<u8>,
    timeout: Duration,
}

impl Connection {
    /// Begins a task.
    pub async fn ask(place: impl Into<Endpoint>, version: Version, text: &str) -> Result<Self> {
        Self::open(&place.into(), version, &version.ask(text), None).await
    }

    /// Resumes a task after the event `last`.
    pub async fn resume(
        place: impl Into<Endpoint>,
        version: Version,
        task: &str,
        last: Option<u64>,
    ) -> Result<Self> {
        Self::open(&place.into(), version, &version.resume(task), last).await
    }

    async fn open(place: &Endpoint, version: Version, body: &Value, last: Option<u64>) -> Result<Self> {
        let client = reqwest::Client::builder().no_proxy().connect_timeout(CONNECT).build()?;
        let mut request = client.post(&place.url).header("content-type", "application/json");
        request = request.header("accept", "text/event-stream").header("a2a-version", version.header());
        if let Some(key) = &place.key {
            request = request.bearer_auth(key);
        }
        if let Some(last) = last {
            request = request.header("last-event-id", event_id::to_string(last));
        }
        let response = request.body(body.to_string()).send().await?;
        ensure!(response.status().is_success(), "the stream answered {}", response.status());
        Ok(Self { response, buffer: Vec::new(), timeout: crate::stream::TIMEOUT })
    }

    /// Takes the stream for cut when it says nothing for so long.
    #[must_use]
    pub fn with_patience(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The next whole event: its id as [`event_id`] reads it, and its result, or its whole answer if that has none. Nothing once the stream
    /// has ended, whether as it should or within an event.
    pub async fn next(&mut self) -> Option<(Option<u64>, Value)> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let frame: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let frame = String::from_utf8_lossy(&frame);
                let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
                let Some(data) = field("data: ") else { continue };
                let mut answer: Value = serde_json::from_str(data).ok()?;
                let number = field("id: ").and_then(event_id::parse);
                return Some((number, answer.get_mut("result").map(Value::take).unwrap_or(answer)));
            }
            let chunk = tokio::time::timeout(self.timeout, self.response.chunk()).await;
            self.buffer.extend(chunk.ok()?.ok()??);
        }
    }
}
