//! Push notifications that an official client asks for.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use caipe_tests::supervisor::until;
use serde_json::json;
use tokio::net::TcpListener;

use super::Client;

const TOKEN: &str = "a-token-of-the-client";

/// The bodies that were pushed with the token.
type Pushed = Arc<Mutex<Vec<String>>>;

/// A client registers a push configuration, reads it back, gets the end of the task, and deletes it.
pub(super) async fn push(client: &mut Client) -> Result<()> {
    let pushed = Pushed::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let app = Router::new().route("/", post(take)).with_state(Arc::clone(&pushed));
    let receiver = tokio::spawn(async move { axum::serve(listener, app).await });
    let outcome = run_scenario(client, &url, &pushed).await;
    receiver.abort();
    outcome
}

async fn run_scenario(client: &mut Client, url: &str, pushed: &Pushed) -> Result<()> {
    let task = client.send(json!({"do": "send", "text": "forever", "immediately": true})).await?.id;
    let made = client.ask(json!({"do": "push_set", "id": task, "url": url, "token": TOKEN})).await?;
    let made = made.one("push")?.clone();
    let id = made["id"].as_str().or_else(|| made["pushNotificationConfig"]["id"].as_str());
    let id =
        id.filter(|id| !id.is_empty()).with_context(|| format!("the configuration has no id: {made}"))?;
    ensure!(made.to_string().contains(url), "{made}");
    let named = |act: &str| json!({"do": act, "id": task, "config": id});
    let known = client.ask(named("push_get")).await?;
    ensure!(known.one("push")?.to_string().contains(id), "{known:?}");
    client.task(json!({"do": "cancel", "id": task})).await?;
    until("the client gets the end", async || Ok(of_end(pushed))).await?;
    if client.keeps_pushes {
        ensure!(client.ask(named("push_list")).await?.all("push")?.len() == 1);
        client.ask(named("push_delete")).await?.all("push")?;
        ensure!(client.ask(named("push_list")).await?.all("push")?.is_empty());
    }
    Ok(())
}

async fn take(State(pushed): State<Pushed>, headers: HeaderMap, body: String) {
    if headers.get("x-a2a-notification-token").is_some_and(|token| token == TOKEN) {
        pushed.lock().unwrap_or_else(PoisonError::into_inner).push(body);
    }
}

fn of_end(pushed: &Pushed) -> bool {
    let bodies = pushed.lock().unwrap_or_else(PoisonError::into_inner);
    bodies.iter().any(|body| body.to_lowercase().contains("canceled"))
}
