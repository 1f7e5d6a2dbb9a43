//! A webhook of the runner's own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// No delivery of a test takes longer.
const TIMEOUT: Duration = Duration::from_secs(40);

/// One request that the webhook got.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub headers: HeaderMap,
    /// Its body; null if it is no JSON.
    pub body: Value,
    /// What it was answered with.
    pub status: StatusCode,
}

impl Delivery {
    /// The text of a header; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// How a webhook treats what comes.
#[derive(Debug, Clone, Default)]
pub struct Manners {
    /// The `Authorization` that is asked for; another one is answered with 401.
    pub authorization: Option<String>,
    /// So many of the first requests are answered with 503.
    pub refuse_first: usize,
}

/// A webhook on loopback. It is gone when dropped.
#[derive(Debug)]
pub struct Receiver {
    /// Its address.
    pub url: String,
    inbox: Arc<Inbox>,
    server: AbortHandle,
}

#[derive(Debug, Default)]
struct Inbox {
    manners: Manners,
    deliveries: Mutex<Vec<Delivery>>,
    changed: Notify,
}

impl Receiver {
    pub async fn start(manners: Manners) -> Result<Self> {
        let inbox = Arc::new(Inbox { manners, ..Inbox::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await.context("failed to listen for webhooks")?;
        let url = format!("http://{}/webhook", listener.local_addr()?);
        let routes = Router::new().route("/webhook", post(receive)).with_state(Arc::clone(&inbox));
        let server = tokio::spawn(async move { axum::serve(listener, routes).await }).abort_handle();
        Ok(Self { url, inbox, server })
    }

    /// Waits until the requests so far satisfy `enough`, and returns them.
    pub async fn until(&self, what: &str, enough: impl Fn(&[Delivery]) -> bool) -> Result<Vec<Delivery>> {
        let waiting = async {
            loop {
                let changed = self.inbox.changed.notified();
                let deliveries = self.inbox.deliveries();
                if enough(&deliveries) {
                    return deliveries;
                }
                changed.await;
            }
        };
        tokio::time::timeout(TIMEOUT, waiting).await.with_context(|| {
            format!("the webhook got no {what}, only {} requests", self.inbox.deliveries().len())
        })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Inbox {
    fn deliveries(&self) -> Vec<Delivery> {
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps a request and says how it is answered.
    fn take(&self, headers: HeaderMap, body: &str) -> StatusCode {
        let mut deliveries = self.deliveries.lock().unwrap_or_else(PoisonError::into_inner);
        let given = headers.get("authorization").and_then(|value| value.to_str().ok());
        let status = match &self.manners.authorization {
            Some(wanted) if given != Some(wanted) => StatusCode::UNAUTHORIZED,
            _ if deliveries.len() < self.manners.refuse_first => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::OK,
        };
        deliveries.push(Delivery { headers, body: serde_json::from_str(body).unwrap_or_default(), status });
        status
    }
}

async fn receive(State(inbox): State<Arc<Inbox>>, headers: HeaderMap, body: String) -> StatusCode {
    let status = inbox.take(headers, &body);
    inbox.changed.notify_waiters();
    status
}
