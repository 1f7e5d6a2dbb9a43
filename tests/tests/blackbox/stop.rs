//! SIGTERM ends the server in order, however soon after the start.

use anyhow::Result;
use caipe_tests::agent;
use caipe_tests::raw_http::{RawConnection, post};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::message;
use serde_json::json;

use super::takeover::{SERVE, another, says, stop};
use crate::echo;

#[tokio::test]
async fn a_server_that_just_started_ends_in_order() -> Result<()> {
    let bridge = ["mcp-bridge", "--listen", "127.0.0.1:0", "--", "cat"];
    let setup = Scenario::new().turn(json!({}), json!({"text": "yes"})).setup()?;
    for arguments in [&SERVE[..], &bridge] {
        for _ in 0..5 {
            let (mut child, mut log) = another(&setup, arguments)?;
            says(&mut log, "listening").await?;
            assert_eq!(stop(&mut child).await?, Some(0), "{arguments:?}");
        }
    }
    Ok(())
}

/// A pod that ends gets its last request at the moment of its SIGTERM.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_came_before_the_signal_still_has_the_tools() -> Result<()> {
    let agent = agent::setup(&echo(&["jira"])?, "jira")?.start().await?;
    let params = message("show it", None);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params}).to_string();
    let request = post(&body, "accept: text/event-stream\r\nexpect: 100-continue\r\n");
    let (head, body) = request.split_at(request.len() - body.len());
    let mut connection = RawConnection::open(&agent).await?;
    connection.send(head).await?;
    // The server asks for the body once it serves the request.
    connection.until(b"100 Continue").await?;
    agent.signal("TERM").await?;
    agent.until("it stops", async || Ok(agent.log().contains("stopping"))).await?;
    agent.until("it takes no connection", async || Ok(agent.get("/health").await.is_err())).await?;
    connection.send(body).await?;
    let answer = String::from_utf8_lossy(&connection.rest().await).into_owned();
    assert!(answer.contains("jira says: show it"), "{answer}\nlog:\n{}", agent.log());
    Ok(())
}
