//! Receivers of push notifications on loopback, and servers that push to them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use caipe_a2a::server::{MemoryPushStore, PushOptions, PushStore, Pushes};
use caipe_net::Screen;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::agent::{Running, eventually, start_pushing};

/// What a receiver answers with.
#[derive(Debug, Clone)]
pub(crate) enum Says {
    Status(u16),
    RetryAfter(u16, &'static str),
    Redirect(String),
    /// Nothing, ever.
    Hangs,
    /// 200, and a body that never ends.
    Drips,
}

/// A notification as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Responds with the configured results, then with 200.
pub(crate) struct Receiver {
    pub(crate) url: String,
    pub(crate) port: u16,
    requests: Arc<Requests>,
    server: JoinHandle<()>,
}

#[derive(Default)]
struct Requests {
    script: Mutex<VecDeque<Says>>,
    received: Mutex<Vec<Received>>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Receiver {
    pub(crate) async fn start(script: impl IntoIterator<Item = Says>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests =
            Arc::new(Requests { script: Mutex::new(script.into_iter().collect()), ..Requests::default() });
        let app = Router::new().route("/hook", post(receive)).with_state(Arc::clone(&requests));
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url: format!("http://127.0.0.1:{port}/hook"), port, requests, server }
    }

    /// All that came, refused or not.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.requests.received.lock().unwrap().clone()
    }

    pub(crate) fn payloads(&self) -> Vec<Value> {
        self.received().into_iter().map(|received| received.body).collect()
    }

    /// Waits until the end of a task was delivered `times` times, in either version.
    pub(crate) async fn end_came(&self, times: usize) {
        eventually(|| self.payloads().iter().filter(|body| tells_end(body)).count() >= times).await;
    }
}

fn tells_end(body: &Value) -> bool {
    let states = [
        &body["status"]["state"],
        &body["statusUpdate"]["status"]["state"],
        &body["task"]["status"]["state"],
    ];
    let ends = ["completed", "canceled", "failed", "TASK_STATE_COMPLETED", "TASK_STATE_CANCELED"];
    states.into_iter().filter_map(Value::as_str).any(|state| ends.contains(&state))
}

async fn receive(State(requests): State<Arc<Requests>>, headers: HeaderMap, body: Bytes) -> Response {
    let body = serde_json::from_slice(&body).unwrap();
    requests.received.lock().unwrap().push(Received { headers, body });
    let says = requests.script.lock().unwrap().pop_front();
    match says {
        None => StatusCode::OK.into_response(),
        Some(Says::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        Some(Says::RetryAfter(status, after)) => {
            (StatusCode::from_u16(status).unwrap(), [("retry-after", after)]).into_response()
        }
        Some(Says::Redirect(to)) => (StatusCode::TEMPORARY_REDIRECT, [("location", to)]).into_response(),
        Some(Says::Hangs) => std::future::pending().await,
        Some(Says::Drips) => {
            let drip = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"."))]).chain(stream::pending());
            Body::from_stream(drip).into_response()
        }
    }
}

/// Quick, and with loopback allowed.
pub(crate) fn options() -> PushOptions {
    PushOptions {
        screen: Screen::new("127.0.0.1".parse().unwrap()),
        pace: Duration::from_millis(5),
        first_wait: Duration::from_millis(5),
        most_wait: Duration::from_millis(20),
        ..PushOptions::default()
    }
}

pub(crate) async fn pushing(options: PushOptions) -> Running {
    pushing_from(Arc::new(MemoryPushStore::default()), options).await
}

pub(crate) async fn pushing_from(store: Arc<dyn PushStore>, options: PushOptions) -> Running {
    start_pushing(Pushes::new(store, options).unwrap()).await
}

/// Calls a method of either version, as nobody or as `caller`.
pub(crate) async fn call_as(server: &Running, caller: Option<&str>, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut request = reqwest::Client::new().post(&server.url).header("content-type", "application/json");
    if !method.contains('/') {
        request = request.header("a2a-version", "1.0");
    }
    if let Some(caller) = caller {
        request = request.header("x-caller", caller);
    }
    request.body(body.to_string()).send().await.unwrap().json().await.unwrap()
}

pub(crate) async fn call(server: &Running, method: &str, params: Value) -> Value {
    let answer = call_as(server, None, method, params).await;
    assert_eq!(answer.get("error"), None, "{method}: {answer}");
    answer["result"].clone()
}

/// Sends a message of 1.0 that wants pushes.
pub(crate) async fn send(server: &Running, text: &str, config: Value) -> Value {
    let message = json!({"role": "ROLE_USER", "messageId": "m", "parts": [{"text": text}]});
    let configuration = json!({"taskPushNotificationConfig": config, "returnImmediately": true});
    call(server, "SendMessage", json!({"message": message, "configuration": configuration})).await["task"]
        .take()
}

/// The same in 0.3.
pub(crate) async fn send_v0_3(server: &Running, text: &str, config: Value) -> Value {
    let message = json!({"kind": "message", "role": "user", "messageId": "m",
        "parts": [{"kind": "text", "text": text}]});
    let configuration = json!({"pushNotificationConfig": config, "blocking": false});
    call(server, "message/send", json!({"message": message, "configuration": configuration})).await
}
