//! An agent that plays what was written down, on a real socket, in either version of the wire.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The version that the agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    V0_3,
    V1_0,
}

/// What the agent does next.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Sends an event, given in the shape of 1.0.
    Event(Value),
    /// Breaks the connection off.
    Break,
    /// Waits until the task is canceled.
    UntilCanceled,
    /// Answers with a status instead of a stream.
    Refuse(u16),
}

/// A running agent; it stops with the runtime of its test.
pub(super) struct Peer {
    pub(super) url: String,
    shared: Arc<Shared>,
}

struct Shared {
    wire: Wire,
    scripts: Mutex<std::vec::IntoIter<Vec<Step>>>,
    requests: Mutex<Vec<(Value, Option<u64>)>>,
    /// The number of the newest event.
    sent: Mutex<u64>,
    canceled: Notify,
    silent_cancel: AtomicBool,
    no_stream: AtomicBool,
}

impl Peer {
    /// Serves; each request that sends or subscribes gets the next script.
    pub(super) async fn start(wire: Wire, scripts: Vec<Vec<Step>>) -> Self {
        let shared = Arc::new(Shared {
            wire,
            scripts: Mutex::new(scripts.into_iter()),
            requests: Mutex::default(),
            sent: Mutex::new(0),
            canceled: Notify::new(),
            silent_cancel: AtomicBool::new(false),
            no_stream: AtomicBool::new(false),
        });
        let router = Router::new()
            .route("/", post(answer))
            .route("/.well-known/agent-card.json", get(card))
            .with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, shared }
    }

    pub(super) fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().unwrap().iter().map(|(request, _)| request.clone()).collect()
    }

    /// What the requests so far named as the last event that they have.
    pub(super) fn last_event_ids(&self) -> Vec<Option<u64>> {
        self.shared.requests.lock().unwrap().iter().map(|(_, last)| *last).collect()
    }

    pub(super) fn never_answer_cancel(&self) {
        self.shared.silent_cancel.store(true, Ordering::Relaxed);
    }

    pub(super) fn does_not_stream(&self) {
        self.shared.no_stream.store(true, Ordering::Relaxed);
    }
}

async fn card(State(shared): State<Arc<Shared>>) -> axum::Json<Value> {
    let streaming = !shared.no_stream.load(Ordering::Relaxed);
    let mut card = json!({
        "name": "Peer", "description": "", "version": "1", "capabilities": {"streaming": streaming},
        "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
    });
    match shared.wire {
        Wire::V0_3 => {
            card["protocolVersion"] = json!("0.3.0");
            card["url"] = json!("/");
            card["preferredTransport"] = json!("JSONRPC");
        }
        Wire::V1_0 => {
            card["supportedInterfaces"] =
                json!([{"url": "/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
        }
    }
    axum::Json(card)
}

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let method = request["method"].as_str().unwrap().to_owned();
    shared.requests.lock().unwrap().push((request, last));
    if method.to_lowercase().contains("cancel") {
        return cancel(&shared).await;
    }
    let steps = shared.scripts.lock().unwrap().next().expect("a script for this request");
    match steps.first() {
        Some(Step::Refuse(status)) => StatusCode::from_u16(*status).unwrap().into_response(),
        Some(Step::Event(event)) if matches!(method.as_str(), "message/send" | "tasks/get") => {
            axum::Json(result(&shared, event)).into_response()
        }
        _ => ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(played(shared, steps)))
            .into_response(),
    }
}

async fn cancel(shared: &Shared) -> Response {
    if shared.silent_cancel.load(Ordering::Relaxed) {
        return std::future::pending().await;
    }
    shared.canceled.notify_one();
    let task = json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}});
    let mut answer = result(shared, &task);
    if shared.wire == Wire::V1_0 {
        answer["result"] = task["task"].clone();
    }
    axum::Json(answer).into_response()
}

fn played(
    shared: Arc<Shared>,
    steps: Vec<Step>,
) -> impl futures::Stream<Item = Result<Bytes, std::io::Error>> {
    stream::iter(steps).then(move |step| {
        let shared = Arc::clone(&shared);
        async move {
            match step {
                Step::Event(event) => Ok(numbered(&shared, &event)),
                Step::Break => {
                    // What was sent before goes out first.
                    tokio::task::yield_now().await;
                    Err(std::io::Error::other("broken off"))
                }
                Step::UntilCanceled => {
                    shared.canceled.notified().await;
                    Ok(Bytes::from_static(b": canceled\n\n"))
                }
                Step::Refuse(_) => Ok(Bytes::new()),
            }
        }
    })
}

/// A snapshot repeats what has a number already.
fn numbered(shared: &Shared, event: &Value) -> Bytes {
    let data = result(shared, event);
    if event.pointer("/task/artifacts").is_some() {
        return Bytes::from(format!("data: {data}\n\n"));
    }
    let mut sent = shared.sent.lock().unwrap();
    *sent += 1;
    Bytes::from(format!("id: {sent}\ndata: {data}\n\n"))
}

fn result(shared: &Shared, event: &Value) -> Value {
    let event = match shared.wire {
        Wire::V1_0 => event.clone(),
        Wire::V0_3 => old(event),
    };
    json!({"jsonrpc": "2.0", "id": 1, "result": event})
}

/// An event in the shape of 0.3.
fn old(event: &Value) -> Value {
    let (member, inner) = event.as_object().unwrap().iter().next().unwrap();
    let kind = match member.as_str() {
        "statusUpdate" => "status-update",
        "artifactUpdate" => "artifact-update",
        other => other,
    };
    let mut inner = inner.clone();
    rewrite(&mut inner);
    inner["kind"] = json!(kind);
    if kind == "status-update" {
        let state = inner["status"]["state"].as_str().unwrap();
        inner["final"] = json!(!matches!(state, "submitted" | "working"));
    }
    inner
}

fn rewrite(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.contains_key("text") {
                members.insert("kind".to_owned(), json!("text"));
            } else if members.contains_key("data") && members.len() == 1 {
                members.insert("kind".to_owned(), json!("data"));
                return;
            }
            for (name, member) in members.iter_mut() {
                match (name.as_str(), member.as_str()) {
                    ("state", Some(state)) => {
                        *member =
                            json!(state.trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-"));
                    }
                    ("role", Some(role)) => *member = json!(role.trim_start_matches("ROLE_").to_lowercase()),
                    _ => rewrite(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(rewrite),
        _ => {}
    }
}

pub(super) fn submitted() -> Value {
    json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED"}}})
}

/// The task with what was streamed of its answer.
pub(super) fn snapshot(streamed: &str, state: &str) -> Value {
    let state = format!("TASK_STATE_{}", state.to_uppercase());
    let artifact = json!({"artifactId": "s", "name": "streaming_result", "parts": [{"text": streamed}]});
    json!({"task": {"id": "t", "contextId": "c", "status": {"state": state}, "artifacts": [artifact]}})
}

pub(super) fn artifact(name: &str, id: &str, text: &str, append: bool) -> Value {
    let artifact = json!({"artifactId": id, "name": name, "parts": [{"text": text}]});
    json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": append, "artifact": artifact}})
}

pub(super) fn data(name: &str, id: &str, data: &Value) -> Value {
    let artifact = json!({"artifactId": id, "name": name, "parts": [{"data": data}]});
    json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": false, "artifact": artifact}})
}

pub(super) fn notice(id: &str, text: &str, kind: &str) -> Value {
    let mut event = artifact("tool_notification_start", id, text, false);
    event["artifactUpdate"]["artifact"]["metadata"] = json!({"agentType": kind});
    event
}

pub(super) fn status(state: &str, text: &str) -> Value {
    let state = format!("TASK_STATE_{}", state.to_uppercase().replace('-', "_"));
    let mut status = json!({"state": state});
    if !text.is_empty() {
        status["message"] = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]});
    }
    json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": status, "metadata": {"trace_id": "f00"}}})
}

pub(super) fn message(text: &str) -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]}})
}
