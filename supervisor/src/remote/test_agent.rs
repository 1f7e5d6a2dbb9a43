//! An agent for tests, of A2A 1.0, that answers each request as the test sets it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use caipe_a2a::client::{CardCache, http_builder};
use caipe_engine::AgentName;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::{RemoteBackend, RemoteTarget};

/// What a request is answered with.
#[derive(Debug, Clone)]
pub(super) enum TestResponse {
    Result(Value),
    /// These events, from this number on, then the end of the stream.
    Events(u64, Vec<Value>),
    /// The same, but the stream breaks off.
    Broken(u64, Vec<Value>),
    /// The same, but the stream stays open and nothing more comes.
    Silent(u64, Vec<Value>),
    /// These JSON-RPC responses as they are, as events without a number, then the end of the stream.
    Recorded(Vec<Value>),
    /// An HTTP status.
    Status(u16),
    /// A JSON-RPC error.
    Error(i64, &'static str),
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) headers: HeaderMap,
}

type Answers = dyn Fn(&str, usize) -> TestResponse + Send + Sync;

/// An agent with set answers.
pub(super) struct TestAgent {
    pub(super) url: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    _server: AbortOnDropHandle<()>,
}

#[derive(Clone)]
struct AgentState {
    card: Value,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    answers: Arc<Answers>,
}

impl TestAgent {
    /// An agent that answers a method, the n-th time from 0 on, with what `answers` says.
    pub(super) async fn start(
        name: &str,
        extensions: Value,
        answers: impl Fn(&str, usize) -> TestResponse + Send + Sync + 'static,
    ) -> Self {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let card = json!({
            "name": name, "description": "", "version": "1",
            "capabilities": {"streaming": true, "extensions": extensions},
            "supportedInterfaces": [{"url": format!("{url}/"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
        });
        Self::serve(listener, card, answers)
    }

    /// The same with a card that was written elsewhere.
    pub(super) async fn with_card(
        card: Value,
        answers: impl Fn(&str, usize) -> TestResponse + Send + Sync + 'static,
    ) -> Self {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        Self::serve(TcpListener::bind("127.0.0.1:0").await.unwrap(), card, answers)
    }

    fn serve(
        listener: TcpListener,
        card: Value,
        answers: impl Fn(&str, usize) -> TestResponse + Send + Sync + 'static,
    ) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::default();
        let state = AgentState { card, asked: Arc::clone(&asked), answers: Arc::new(answers) };
        let routes = Router::new()
            .route("/.well-known/agent-card.json", get(serve_card))
            .route("/", post(answer))
            .with_state(state);
        let serving = async move { drop(axum::serve(listener, routes).await) };
        Self { url, asked, _server: AbortOnDropHandle::new(tokio::spawn(serving)) }
    }

    /// The requests so far; the card's are called `card`.
    pub(super) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// How often a method was called.
    pub(super) fn count(&self, method: &str) -> usize {
        self.asked().iter().filter(|asked| asked.method == method).count()
    }

    /// The backend of this agent, under the name `jira`.
    pub(super) fn backend(&self) -> Arc<RemoteBackend> {
        backend(&self.url, HeaderMap::new(), Duration::from_secs(20))
    }

    /// The same, with tools that need approval.
    pub(super) fn guarded_backend(&self, patterns: &[&str]) -> Arc<RemoteBackend> {
        let require_approval = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        backend_of(RemoteTarget {
            require_approval,
            client_tools: None,
            ..target(&self.url, HeaderMap::new(), Duration::from_secs(20))
        })
    }
}

/// The backend of the agent `jira` at an address.
pub(super) fn backend(url: &str, headers: HeaderMap, silence: Duration) -> Arc<RemoteBackend> {
    backend_of(target(url, headers, silence))
}

fn target(url: &str, headers: HeaderMap, silence: Duration) -> RemoteTarget {
    let (name, url) = (AgentName::new("jira"), url.parse().unwrap());
    RemoteTarget { name, url, headers, silence, require_approval: Vec::new(), client_tools: None }
}

fn backend_of(target: RemoteTarget) -> Arc<RemoteBackend> {
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    RemoteBackend::new(target, http_builder().no_proxy().build().unwrap(), Arc::new(CardCache::default()))
}

async fn serve_card(State(state): State<AgentState>, headers: HeaderMap) -> axum::Json<Value> {
    state.asked.lock().unwrap().push(ReceivedRequest {
        method: "card".to_owned(),
        params: Value::Null,
        headers,
    });
    axum::Json(state.card)
}

async fn answer(State(state): State<AgentState>, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let method = request["method"].as_str().unwrap().to_owned();
    let nth = {
        let mut asked = state.asked.lock().unwrap();
        asked.push(ReceivedRequest { method: method.clone(), params: request["params"].clone(), headers });
        asked.iter().filter(|asked| asked.method == method).count() - 1
    };
    match (state.answers)(&method, nth) {
        TestResponse::Result(result) => {
            axum::Json(json!({"jsonrpc": "2.0", "id": 1, "result": result})).into_response()
        }
        TestResponse::Error(code, message) => {
            axum::Json(json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message}}))
                .into_response()
        }
        TestResponse::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        TestResponse::Events(first, events) => {
            sse(stream::iter(frames(first, events)).map(Ok::<_, Infallible>))
        }
        TestResponse::Recorded(responses) => {
            let frames = responses.into_iter().map(|response| format!("data: {response}\n\n"));
            sse(stream::iter(frames.collect::<Vec<_>>()).map(Ok::<_, Infallible>))
        }
        TestResponse::Broken(first, events) => {
            let broken = stream::once(async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Err(std::io::Error::other("broken"))
            });
            sse(stream::iter(frames(first, events)).map(Ok).chain(broken))
        }
        TestResponse::Silent(first, events) => {
            sse(stream::iter(frames(first, events)).map(Ok::<_, Infallible>).chain(stream::pending()))
        }
    }
}

fn frames(first: u64, events: Vec<Value>) -> Vec<String> {
    let frame = |(seq, event): (u64, Value)| {
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": event});
        format!("id: {seq}\ndata: {answer}\n\n")
    };
    (first..).zip(events).map(frame).collect()
}

fn sse<E: std::error::Error + Send + Sync + 'static>(
    frames: impl futures::Stream<Item = Result<String, E>> + Send + 'static,
) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(frames)).into_response()
}

/// The task `t` in this state.
pub(super) fn task(state: &str) -> Value {
    json!({"task": whole(state)})
}

/// The same as the answer of a look at it.
pub(super) fn whole(state: &str) -> Value {
    json!({"id": "t", "contextId": "k", "status": {"state": format!("TASK_STATE_{state}")}})
}

/// A change of its status.
pub(super) fn status(state: &str, text: &str) -> Value {
    let message = json!({"messageId": text, "role": "ROLE_AGENT", "parts": [{"text": text}]});
    let state = format!("TASK_STATE_{state}");
    json!({"statusUpdate": {"taskId": "t", "contextId": "k", "status": {"state": state, "message": message}}})
}

pub(super) fn artifact(id: &str, name: &str, description: &str, text: &str) -> Value {
    json!({"artifactUpdate": {"taskId": "t", "contextId": "k", "artifact": {
        "artifactId": id, "name": name, "description": description, "parts": [{"text": text}]}}})
}
