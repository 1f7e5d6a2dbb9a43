//! A stand-in for an A2A agent that answers every message with the same events.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// A running agent; it stops with the runtime of its test.
pub(super) struct Agent {
    url: String,
    shared: Arc<Shared>,
}

struct Shared {
    input_modes: Value,
    artifacts: Mutex<Value>,
    messages: Mutex<Vec<Value>>,
    /// Requests for the file `/held.txt` wait for a permit.
    held: Semaphore,
}

impl Agent {
    /// Starts an agent that accepts these media types.
    pub(super) async fn start(input_modes: &[&str]) -> Result<Self> {
        let shared = Arc::new(Shared {
            input_modes: json!(input_modes),
            artifacts: Mutex::new(json!([])),
            messages: Mutex::default(),
            held: Semaphore::new(0),
        });
        let router = Router::new()
            .route("/", post(answer))
            .route("/.well-known/agent-card.json", get(card))
            .route("/held.txt", get(held))
            .with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, shared })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Sets the artifacts of the next answers, one for each part.
    pub(super) fn answers(&self, parts: &[Value]) {
        let artifact =
            |(at, part)| json!({"artifactId": format!("a{at}"), "name": "report", "parts": [part]});
        let artifacts = parts.iter().enumerate().map(artifact).collect::<Vec<_>>();
        *self.shared.artifacts.lock().unwrap_or_else(PoisonError::into_inner) = json!(artifacts);
    }

    /// The parts of the messages so far.
    pub(super) fn messages(&self) -> Vec<Value> {
        self.shared.messages.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Answers the requests for the held file.
    pub(super) fn release(&self) {
        self.shared.held.add_permits(10);
    }
}

async fn card(State(shared): State<Arc<Shared>>) -> axum::Json<Value> {
    axum::Json(json!({
        "name": "Agent", "description": "", "version": "1", "capabilities": {"streaming": true},
        "supportedInterfaces": [{"url": "/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "defaultInputModes": shared.input_modes, "defaultOutputModes": [], "skills": [],
    }))
}

async fn held(State(shared): State<Arc<Shared>>) -> Response {
    drop(shared.held.acquire().await);
    "held content".into_response()
}

/// Streams the whole task, which has ended.
async fn answer(State(shared): State<Arc<Shared>>, axum::Json(request): axum::Json<Value>) -> Response {
    if let Some(parts) = request.pointer("/params/message/parts") {
        shared.messages.lock().unwrap_or_else(PoisonError::into_inner).push(parts.clone());
    }
    let artifacts = shared.artifacts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let status = json!({"state": "TASK_STATE_COMPLETED"});
    let task = json!({"id": "t", "contextId": "c", "status": status, "artifacts": artifacts});
    let event = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"task": task}});
    ([(CONTENT_TYPE, "text/event-stream")], Body::from(format!("data: {event}\n\n"))).into_response()
}
