//! One agent in a process of its own: `caipe-supervisor agent NAME`.

mod cards;
mod ends;
mod identity;
mod lost;
mod remote;
mod streams;

use anyhow::{Context, Result};
use caipe_tests::agent;
use caipe_tests::supervisor::Supervisor;
use serde_json::{Value, json};

use crate::echo;

/// The agent `jira` on the stand-in MCP server; it echoes what it is asked.
async fn jira() -> Result<Supervisor> {
    agent::setup(&echo(&["jira"])?, "jira")?.start().await
}

/// A JSON-RPC call in A2A 1.0.
async fn call_1_0(agent: &Supervisor, method: &str, params: Value) -> Result<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = reqwest::Client::new().post(agent.url()).header("a2a-version", "1.0").json(&body);
    request.send().await?.json().await.context("the answer is not JSON")
}
