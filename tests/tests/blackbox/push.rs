//! Push notifications of the built supervisor, and what a crash does to them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor, until};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A receiver of notifications on loopback; stops when dropped.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
    server: JoinHandle<()>,
}

#[derive(Clone)]
struct HookState {
    received: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
    hangs: bool,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Receiver {
    pub(crate) async fn start(address: SocketAddr, hangs: bool) -> Result<Self> {
        let listener = TcpListener::bind(address).await.context("failed to listen")?;
        let address = listener.local_addr()?;
        let received = Arc::default();
        let state = HookState { received: Arc::clone(&received), hangs };
        let app = Router::new().route("/hook", post(receive)).with_state(state);
        let server = tokio::spawn(async move { drop(axum::serve(listener, app).await) });
        Ok(Self { address, received, server })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn all(&self) -> Vec<(HeaderMap, Value)> {
        self.received.lock().map(|received| received.clone()).unwrap_or_default()
    }

    /// The notification that tells of the end, once it came.
    pub(crate) async fn end(&self) -> Result<(HeaderMap, Value)> {
        until("the end is delivered", async || Ok(self.all().iter().any(|(_, body)| tells_end(body))))
            .await?;
        self.all().into_iter().find(|(_, body)| tells_end(body)).context("the end is gone")
    }
}

pub(crate) fn tells_end(body: &Value) -> bool {
    body["status"]["state"] == "completed"
        || body["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
}

async fn receive(State(state): State<HookState>, headers: HeaderMap, body: Bytes) -> Response {
    let body = serde_json::from_slice(&body).unwrap_or_default();
    if let Ok(mut received) = state.received.lock() {
        received.push((headers, body));
    }
    if state.hangs {
        return std::future::pending().await;
    }
    StatusCode::OK.into_response()
}

pub(crate) fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn setup() -> Result<Setup> {
    Ok(Scenario::new().answers("hello", "Good day to you.").setup()?.env("CAIPE_PUSH_ALLOW", "127.0.0.1"))
}

/// Sends `hello` in 0.3, without waiting; returns the task's id.
async fn hello(supervisor: &Supervisor, hook: &str) -> Result<String> {
    let message = json!({"kind": "message", "role": "user", "messageId": "m",
        "parts": [{"kind": "text", "text": "hello"}]});
    let config = json!({"url": hook, "token": "t0k"});
    let configuration = json!({"blocking": false, "pushNotificationConfig": config});
    let params = json!({"message": message, "configuration": configuration});
    let answer = supervisor.call("message/send", params).await?;
    Ok(answer["result"]["id"].as_str().with_context(|| format!("no task: {answer}"))?.to_owned())
}

/// The same in 1.0.
async fn hello_v1_0(supervisor: &Supervisor, hook: &str) -> Result<()> {
    let message = json!({"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hello"}]});
    let config = json!({"url": hook, "authentication": {"scheme": "Bearer", "credentials": "s3cret"}});
    let configuration = json!({"returnImmediately": true, "taskPushNotificationConfig": config});
    let params = json!({"message": message, "configuration": configuration});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
    let request = reqwest::Client::builder().no_proxy().build()?.post(supervisor.url());
    let request = request.header("content-type", "application/json").header("a2a-version", "1.0");
    let answer: Value = request.body(body.to_string()).send().await?.json().await?;
    ensure!(answer["result"]["task"]["id"].is_string(), "no task: {answer}");
    Ok(())
}

async fn ended(supervisor: &Supervisor, task: &str) -> Result<Value> {
    let read = async || supervisor.call("tasks/get", json!({"id": task})).await;
    let is_over = async || Ok(read().await?["result"]["status"]["state"] == "completed");
    supervisor.until("the task has ended", is_over).await?;
    Ok(read().await?["result"].take())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_is_reported_in_the_shape_of_each_version() -> Result<()> {
    let supervisor = setup()?.start().await?;
    let old = Receiver::start(anywhere(), false).await?;
    let task = hello(&supervisor, &old.url()).await?;
    let (headers, body) = old.end().await?;
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["x-a2a-notification-token"], "t0k");
    assert_eq!(body, ended(&supervisor, &task).await?, "the notification has the task as it is");

    let new = Receiver::start(anywhere(), false).await?;
    hello_v1_0(&supervisor, &new.url()).await?;
    let (headers, body) = new.end().await?;
    assert_eq!(headers["content-type"], "application/a2a+json");
    assert_eq!(headers["authorization"], "Bearer s3cret");
    let members: Vec<_> = body.as_object().context("no object")?.keys().collect();
    assert_eq!(members, ["statusUpdate"]);
    ensure!(!supervisor.log().contains("s3cret"), "a secret is in the log");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_undelivered_is_delivered_by_the_next_start() -> Result<()> {
    let setup = setup()?;
    let supervisor = setup.start().await?;
    // Nobody is there: the port was free a moment ago.
    let gone = Receiver::start(anywhere(), false).await?;
    let (address, url) = (gone.address, gone.url());
    drop(gone);
    let task = hello(&supervisor, &url).await?;
    ended(&supervisor, &task).await?;
    supervisor.kill().await?;

    let hook = Receiver::start(address, false).await?;
    let supervisor = setup.start().await?;
    let (_, body) = hook.end().await?;
    assert_eq!(body, ended(&supervisor, &task).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_slows_no_run() -> Result<()> {
    let supervisor = setup()?.start().await?;
    let hook = Receiver::start(anywhere(), true).await?;
    let task = hello(&supervisor, &hook.url()).await?;
    until("the receiver was asked", async || Ok(!hook.all().is_empty())).await?;
    ended(&supervisor, &task).await?;
    assert_eq!(supervisor.ask("hello").await?.result()?, "Good day to you.");
    assert_eq!(hook.all().len(), 1, "it still hangs");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn inner_addresses_are_refused_unless_they_are_allowed_and_all_is_when_it_is_off() -> Result<()> {
    let params = json!({"message": {"kind": "message", "role": "user", "messageId": "m",
        "parts": [{"kind": "text", "text": "hello"}]},
        "configuration": {"pushNotificationConfig": {"url": "http://127.0.0.1:9/hook"}}});
    for (name, value, code) in [("CAIPE_PUSH", "on", -32602), ("CAIPE_PUSH", "off", -32003)] {
        let supervisor = Scenario::new().answers("hello", "Hi.").setup()?.env(name, value).start().await?;
        let answer = supervisor.call("message/send", params.clone()).await?;
        assert_eq!(answer["error"]["code"], code, "{answer}");
        let (_, card) = supervisor.get("/.well-known/agent-card.json").await?;
        let card: Value = serde_json::from_str(&card)?;
        let announced = card["capabilities"]["pushNotifications"].as_bool().unwrap_or(false);
        assert_eq!(announced, value == "on");
    }
    Ok(())
}
