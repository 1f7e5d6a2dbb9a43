//! A server for our client to talk to: one card, one answer.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use caipe_a2a::card;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// A server on loopback that speaks JSON-RPC of 1.0. It is gone when dropped.
#[derive(Debug)]
pub struct StandIn {
    /// Its base URL.
    pub url: String,
    shared: Arc<Shared>,
    server: AbortHandle,
}

#[derive(Debug)]
struct Shared {
    answer: Value,
    methods: Mutex<Vec<String>>,
}

impl StandIn {
    /// Shows `card`, whose interfaces give way to the server's own, and answers each call with `answer`, the whole
    /// JSON-RPC answer.
    pub async fn start(mut card: Value, answer: Value) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("failed to listen")?;
        let url = format!("http://{}", listener.local_addr()?);
        card["supportedInterfaces"] =
            json!([{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
        let shared = Arc::new(Shared { answer, methods: Mutex::default() });
        let routes = Router::new()
            .route(card::PATH, get(|| async { Json(card) }))
            .route("/", post(reply))
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move { axum::serve(listener, routes).await }).abort_handle();
        Ok(Self { url, shared, server })
    }

    /// The methods that were called.
    pub fn methods(&self) -> Vec<String> {
        self.shared.methods.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn reply(State(shared): State<Arc<Shared>>, Json(request): Json<Value>) -> Json<Value> {
    let method = request["method"].as_str().unwrap_or_default().to_owned();
    shared.methods.lock().unwrap_or_else(PoisonError::into_inner).push(method);
    Json(shared.answer.clone())
}
