//! Readers of streams that read slowly, or not at all.

use anyhow::{Context, Result, ensure};
use caipe_tests::raw_http::{self, RawConnection};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::message;
use serde_json::{Value, json};

use super::is_well;

/// Tokens of the long answer.
const TOKENS: usize = 20_000;

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_delays_nobody_and_still_gets_everything() -> Result<()> {
    let long = json!({"repeat": {"token": "tick ", "times": TOKENS}});
    let scenario = Scenario::new().turn(json!({"user": "at length"}), long).answers("*", "Hello.");
    let supervisor = scenario.setup()?.start().await?;
    let mut stalled = Vec::new();
    for _ in 0..2 {
        let mut raw = RawConnection::open_narrow(&supervisor).await?;
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": message("at length", None)});
        raw.send(&raw_http::post(&body.to_string(), "connection: close\r\n")).await?;
        raw.until(b"\"kind\":\"task\"").await?;
        stalled.push(raw);
    }
    for _ in 0..5 {
        is_well(&supervisor).await?;
    }
    ensure!(supervisor.ask("at length").await?.streamed(|_| true) == "tick ".repeat(TOKENS));
    for mut raw in stalled {
        let rest = String::from_utf8_lossy(&raw.rest().await).into_owned();
        let mut events = rest.lines().filter_map(|line| line.strip_prefix("data: "));
        let last = events.next_back().context("no event came")?;
        let last: Value = serde_json::from_str(last)?;
        ensure!(
            last["result"]["status"]["state"] == "completed" && last["result"]["final"] == true,
            "{last}"
        );
        ensure!(rest.contains(&"tick ".repeat(TOKENS)), "its final result lacks something");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_nobody_reads_any_more_end() -> Result<()> {
    let slow = json!({"repeat": {"token": "tick ", "times": 400}, "delay_ms": 10});
    let scenario = Scenario::new().turn(json!({"user": "slowly"}), slow).answers("*", "Hello.");
    let supervisor = scenario.setup()?.start().await?;
    is_well(&supervisor).await?;
    let files = super::open_files(&supervisor)?;
    for _ in 0..50 {
        let mut raw = RawConnection::open(&supervisor).await?;
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": message("slowly", None)});
        raw.send(&raw_http::post(&body.to_string(), "")).await?;
        raw.until(b"\"kind\":\"task\"").await?;
    }
    super::until_open_files(&supervisor, files + 20).await?;
    is_well(&supervisor).await
}
