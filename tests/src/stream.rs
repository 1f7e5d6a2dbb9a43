//! One answer, as it came over the wire: the events of a `message/stream` request.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::StreamExt;
use serde_json::Value;

/// No answer in these tests takes longer.
pub const TIMEOUT: Duration = Duration::from_mins(1);

/// Reads server-sent events from a response, one JSON document per event.
#[derive(Debug)]
pub struct SseReader {
    response: reqwest::Response,
    buffer: Vec<u8>,
}

impl SseReader {
    /// A reader of the body of `response`, which must be an event stream.
    pub fn new(response: reqwest::Response) -> Result<Self> {
        ensure!(response.status().is_success(), "the stream answered {}", response.status());
        let kind = response.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default();
        ensure!(kind.starts_with("text/event-stream"), "the stream has content type {kind:?}");
        Ok(Self { response, buffer: Vec::new() })
    }

    /// The `data` of the next event; nothing at the end of the stream. A broken connection is an error, and so
    /// is one that ends in the middle of an event.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        loop {
            while let Some(end) = find(&self.buffer, b"\n\n") {
                let frame: Vec<u8> = self.buffer.drain(..end + 2).collect();
                if let Some(data) = data_of(&frame)? {
                    return Ok(Some(data));
                }
            }
            match tokio::time::timeout(TIMEOUT, self.response.chunk())
                .await
                .context("the stream fell silent")??
            {
                Some(chunk) => self.buffer.extend(chunk.iter().filter(|byte| **byte != b'\r')),
                None if self.buffer.is_empty() => return Ok(None),
                None => bail!("the stream ended within an event: {}", String::from_utf8_lossy(&self.buffer)),
            }
        }
    }

    /// The `result` of the next event; a JSON-RPC error is an error.
    pub async fn next_event(&mut self) -> Result<Option<Value>> {
        self.next().await?.map(result_of).transpose()
    }

    /// Reads on until an event satisfies `wanted`; returns all events read, that one last.
    pub async fn read_until(&mut self, wanted: impl Fn(&Value) -> bool) -> Result<Vec<Value>> {
        let mut events = Vec::new();
        while let Some(event) = self.next_event().await? {
            let found = wanted(&event);
            events.push(event);
            if found {
                return Ok(events);
            }
        }
        bail!(
            "the stream ended before the event that was waited for; it had: {}",
            Answer::new(events).outline()
        )
    }

    /// Reads on to the end.
    pub async fn rest(mut self) -> Result<Vec<Value>> {
        let mut events = Vec::new();
        while let Some(event) = self.next_event().await? {
            events.push(event);
        }
        Ok(events)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// The JSON of the `data:` lines of one event; nothing if it has none (a comment that keeps the stream alive).
fn data_of(frame: &[u8]) -> Result<Option<Value>> {
    let text = std::str::from_utf8(frame).context("an event is not UTF-8")?;
    let lines: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .map(|l| l.strip_prefix(' ').unwrap_or(l))
        .collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let data = lines.join("\n");
    serde_json::from_str(&data).map(Some).with_context(|| format!("the data of an event is not JSON: {data}"))
}

fn result_of(mut message: Value) -> Result<Value> {
    ensure!(message["jsonrpc"] == "2.0", "an event is not JSON-RPC 2.0: {message}");
    match message.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => bail!("the stream answered with an error: {message}"),
    }
}

/// All events of one answer, with the questions that tests ask about them.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// The events (A2A 0.3), in the order in which they came.
    pub events: Vec<Value>,
}

impl Answer {
    /// An answer of these events.
    pub const fn new(events: Vec<Value>) -> Self {
        Self { events }
    }

    /// The artifact updates with this name.
    pub fn artifacts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> + 'a {
        self.events.iter().filter(move |event| event["artifact"]["name"] == name)
    }

    /// The texts of the artifact updates with this name.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.artifacts(name).map(text_of).collect()
    }

    /// The text of all `streaming_result` pieces for which `wanted` holds, put together.
    pub fn streamed(&self, wanted: impl Fn(&Value) -> bool) -> String {
        self.artifacts("streaming_result").filter(|event| wanted(event)).map(text_of).collect()
    }

    /// The text of the `final_result`, or of the `partial_result`.
    pub fn result(&self) -> Result<String> {
        let found = self.artifacts("final_result").chain(self.artifacts("partial_result")).next();
        found.map(text_of).with_context(|| format!("there is no final_result: {}", self.outline()))
    }

    /// The state of the last event, a final status.
    pub fn state(&self) -> &str {
        self.events.last().and_then(|event| event["status"]["state"].as_str()).unwrap_or("none")
    }

    /// The text of the last status.
    pub fn status_text(&self) -> String {
        self.events.last().map(|event| parts_text(&event["status"]["message"]["parts"])).unwrap_or_default()
    }

    /// The id of the task.
    pub fn task(&self) -> &str {
        self.events.first().and_then(|event| event["id"].as_str()).unwrap_or_default()
    }

    /// The id of the conversation.
    pub fn context(&self) -> &str {
        self.events.first().and_then(|event| event["contextId"].as_str()).unwrap_or_default()
    }

    /// Every state of the plan: `(agent, title, status)` of each step.
    pub fn plans(&self) -> Vec<Vec<(String, String, String)>> {
        let updates = self.events.iter().filter(|event| {
            event["artifact"]["name"].as_str().is_some_and(|name| name.starts_with("execution_plan_"))
        });
        updates.map(|event| steps_of(event).iter().map(step).collect()).collect()
    }

    /// One line per event, for messages of failed tests.
    pub fn outline(&self) -> String {
        let lines: Vec<String> = self.events.iter().map(line_of).collect();
        format!("\n  {}", lines.join("\n  "))
    }
}

fn line_of(event: &Value) -> String {
    let status = &event["status"];
    match event["kind"].as_str() {
        Some("artifact-update") => format!("{} {:?}", event["artifact"]["name"], text_of(event)),
        Some("status-update") => {
            let text = parts_text(&status["message"]["parts"]);
            format!("status {} final={} {text:?}", status["state"], event["final"])
        }
        _ => event["kind"].to_string(),
    }
}

/// The steps of a plan event.
pub fn steps_of(event: &Value) -> &[Value] {
    let parts = event["artifact"]["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().find_map(|part| part["data"]["steps"].as_array()).map(Vec::as_slice).unwrap_or_default()
}

fn step(step: &Value) -> (String, String, String) {
    let text = |key: &str| step[key].as_str().unwrap_or_default().to_owned();
    (text("agent"), text("title"), text("status"))
}

/// The text of an artifact update.
pub fn text_of(event: &Value) -> String {
    parts_text(&event["artifact"]["parts"])
}

/// The text parts of a list of parts, put together.
pub fn parts_text(parts: &Value) -> String {
    parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
}

/// Collects the answers of several streams that are read at the same time.
pub async fn all_of(readers: Vec<SseReader>) -> Result<Vec<Answer>> {
    let rests = futures::stream::iter(readers.into_iter().map(SseReader::rest)).buffered(256);
    let answers: Vec<Result<Vec<Value>>> = rests.collect().await;
    answers.into_iter().map(|events| events.map(Answer::new)).collect()
}
