//! The metrics of the built supervisor, and the memory that a hostile request takes.

use anyhow::{Context, Result, ensure};
use caipe_tests::process::resident_kib;
use caipe_tests::supervisor::{Supervisor, until};
use serde_json::json;

use crate::echo;

/// The URL of the metrics, which the supervisor logs.
pub(crate) fn metrics_url(supervisor: &Supervisor) -> Result<String> {
    let log = supervisor.log();
    let line = log.lines().find(|line| line.contains("serving metrics")).context("no metrics are served")?;
    let address = line.split("address=").nth(1).context("the log has no address")?;
    Ok(format!("http://{}/metrics", address.trim()))
}

/// The value of a metric with its labels, or 0 while it has none.
pub(crate) async fn value(url: &str, name: &str) -> Result<f64> {
    let response = reqwest::get(url).await?;
    let media_type = response.headers()["content-type"].to_str()?.to_owned();
    ensure!(media_type.starts_with("application/openmetrics-text"), "{media_type}");
    let text = response.text().await?;
    ensure!(text.ends_with("# EOF\n"), "{text}");
    let prefix = format!("caipe_supervisor_{name} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&prefix));
    Ok(value.map_or(Ok(0.0), str::parse)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_move_with_what_happens() -> Result<()> {
    let scenario = echo(&["jira"])?.asks("echo", &["jira"]).turn(
        json!({"user": "long"}),
        json!({"repeat": {"token": "tick ", "times": 100_000}, "delay_ms": 5}),
    );
    let setup = scenario.setup()?.env("NO_COLOR", "1").env("CAIPE_METRICS_ADDRESS", "127.0.0.1:0");
    let supervisor = setup.start().await?;
    let url = metrics_url(&supervisor)?;
    supervisor.ask("echo this").await?;
    for name in [
        "model_calls_total{outcome=\"ok\"}",
        "tool_calls_total{outcome=\"ok\"}",
        "delegations_total{outcome=\"ok\"}",
        "commit_duration_seconds_count{outcome=\"ok\"}",
        "resident_memory_bytes",
    ] {
        ensure!(value(&url, name).await? > 0.0, "{name} did not move");
    }
    let stream = supervisor.stream("long", None).await?;
    until("the run and its stream are counted", async || {
        Ok(value(&url, "active_runs").await? >= 1.0 && value(&url, "open_streams").await? >= 1.0)
    })
    .await?;
    drop(stream);
    until("the stream is not counted any more", async || Ok(value(&url, "open_streams").await? == 0.0))
        .await?;
    ensure!(supervisor.get("/metrics").await?.0 != 200, "clients of A2A do not see the metrics");
    Ok(())
}

/// Decoded, it took 4.1 GB.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_800_000_parts_takes_little_more_than_its_bytes() -> Result<()> {
    let supervisor = echo(&[])?.answers("hi", "Hello.").setup()?.start().await?;
    let parts = vec![r#"{"text":""}"#; 800_000].join(",");
    let message = format!(r#"{{"message":{{"messageId":"m","role":"user","parts":[{parts}]}}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{message}}}"#);
    let pid = supervisor.pid().context("the supervisor has ended")?;
    let before = resident_kib(pid)?;
    let answer = supervisor.post(body).await?.text().await?;
    ensure!(answer.contains("has 1600005 JSON values; at most 20000 are allowed"), "{answer}");
    let peak = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no peak")?;
    let peak: u64 = peak.trim().trim_end_matches("kB").trim().parse()?;
    println!("{before} KiB before, {peak} KiB at the peak");
    ensure!(peak < before + 40 * 1024, "{before} KiB before, {peak} KiB at the peak");
    Ok(())
}
