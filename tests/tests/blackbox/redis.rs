//! A supervisor whose store is Redis: a real server, also in trouble.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use caipe_fixtures::redis::RedisServer;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor};
use serde_json::{Value, json};

fn remembers() -> Scenario {
    Scenario::new()
        .answers("first", "Noted.")
        .answers("second", "You began with: {{ history[0].text }}")
        .turn(json!({"user": "long"}), json!({"repeat": {"token": "tick ", "times": 400}, "delay_ms": 10}))
        .set("store", json!({"redis": {"secretRef": {"name": "redis"}}}))
}

fn setup(scenario: &Scenario, server: &RedisServer) -> Result<Setup> {
    Ok(scenario.setup()?.env("REDIS_URL", server.url()))
}

/// Runs a command of Redis as an administrator does.
fn command(server: &RedisServer, words: &[&str]) -> Result<String> {
    let port = server.port().to_string();
    let output =
        Command::new("redis-cli").args(["-p", &port]).args(words).output().context("no redis-cli")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn state(supervisor: &Supervisor, task: &str) -> Result<Value> {
    Ok(supervisor.call("tasks/get", json!({"id": task})).await?["result"]["status"]["state"].clone())
}

async fn reasons(supervisor: &Supervisor) -> Result<String> {
    Ok(supervisor.get("/ready").await?.1)
}

async fn warnings(supervisor: &Supervisor) -> Result<String> {
    Ok(supervisor.get("/internal/status").await?.1)
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_outlive_the_process_and_the_server() -> Result<()> {
    let mut server = RedisServer::start(&[])?;
    let setup = setup(&remembers(), &server)?;
    let supervisor = setup.start().await?;
    let first = supervisor.ask("first: my name is Ada").await?;
    supervisor.kill().await?;
    server.kill()?;
    server.restart()?;
    ensure!(!setup.dir().join("data/caipe.sqlite3").exists(), "there is a second store");

    let supervisor = setup.start().await?;
    let second = supervisor.ask_in("second: what did I say?", Some(first.context())).await?;
    assert_eq!(second.result()?, "You began with: first: my name is Ada");
    assert_eq!(state(&supervisor, first.task()).await?, "completed");
    assert!(!warnings(&supervisor).await?.contains("edis"), "the server is as it should be");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_is_continued_by_the_next_process() -> Result<()> {
    let server = RedisServer::start(&[])?;
    let setup = setup(&remembers(), &server)?;
    let supervisor = setup.start().await?;
    let mut stream = supervisor.stream("long", None).await?;
    let seen = stream.read_until(|event| event["artifact"]["name"] == "streaming_result").await?;
    let task = seen[0]["id"].as_str().context("no task")?.to_owned();
    supervisor.kill().await?;
    let supervisor = setup.start().await?;
    let over = async || Ok(state(&supervisor, &task).await? == "completed");
    supervisor.until("the interrupted run ends", over).await
}

/// The run waits, readers learn why, and it ends once the server is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_while_the_server_is_gone() -> Result<()> {
    let mut server = RedisServer::start(&[])?;
    let supervisor = setup(&remembers(), &server)?.start().await?;
    let mut stream = supervisor.stream("long", None).await?;
    let seen = stream.read_until(|event| event["artifact"]["name"] == "streaming_result").await?;
    let task = seen[0]["id"].as_str().context("no task")?.to_owned();
    server.kill()?;
    let unready = async || Ok(reasons(&supervisor).await?.contains("failed to reach the redis store"));
    supervisor.until("the supervisor says that Redis is gone", unready).await?;
    let refused =
        supervisor.call("message/send", json!({"message": caipe_tests::supervisor::message("first", None)}));
    let refused = refused.await?;
    ensure!(refused["error"].is_object(), "a new task without a store: {refused}");
    let report = Instant::now();
    warnings(&supervisor).await?;
    ensure!(report.elapsed() < Duration::from_secs(3), "the report waits for Redis: {:?}", report.elapsed());
    server.restart()?;
    supervisor.until_ready().await?;
    let over = async || Ok(state(&supervisor, &task).await? == "completed");
    supervisor.until("the run ends", over).await?;
    assert_eq!(supervisor.ask("first").await?.result()?, "Noted.");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_and_a_replica_are_named_until_they_are_corrected() -> Result<()> {
    let server = RedisServer::start(&[])?;
    let supervisor = setup(&remembers(), &server)?.start().await?;
    let first = supervisor.ask("first: my name is Ada").await?;
    for (trouble, repair, wanted) in [
        (["config", "set", "maxmemory", "1"], ["config", "set", "maxmemory", "0"], "raise its maxmemory"),
        (["replicaof", "127.0.0.1", "1", ""], ["replicaof", "no", "one", ""], "name the primary in the URL"),
    ] {
        let words =
            |words: [&'static str; 4]| words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>();
        command(&server, &words(trouble))?;
        let named = async || Ok(reasons(&supervisor).await?.contains(wanted));
        supervisor.until(wanted, named).await?;
        command(&server, &words(repair))?;
        supervisor.until_ready().await?;
    }
    let second = supervisor.ask_in("second: what did I say?", Some(first.context())).await?;
    assert_eq!(second.result()?, "You began with: first: my name is Ada");
    Ok(())
}

/// A server that hangs delays neither the report to the operator nor `/ready`.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_reported_in_time() -> Result<()> {
    let server = RedisServer::start(&[])?;
    let supervisor = setup(&remembers(), &server)?.start().await?;
    command(&server, &["client", "pause", "4500", "all"])?;
    let begin = Instant::now();
    let ready = reasons(&supervisor).await?;
    warnings(&supervisor).await?;
    ensure!(ready.contains("the redis store does not answer"), "{ready}");
    ensure!(begin.elapsed() < Duration::from_secs(4), "they wait for Redis: {:?}", begin.elapsed());
    supervisor.until_ready().await
}

#[tokio::test(flavor = "multi_thread")]
async fn weak_settings_are_in_the_report() -> Result<()> {
    let server = RedisServer::start(&["--appendfsync", "everysec", "--maxmemory-policy", "allkeys-lru"])?;
    let supervisor = setup(&remembers(), &server)?.start().await?;
    let report = warnings(&supervisor).await?;
    ensure!(
        report.contains("appendfsync everysec") && report.contains("maxmemory-policy allkeys-lru"),
        "{report}"
    );
    Ok(())
}

/// Without its store, a supervisor starts with one in memory and says so, unless the store is required.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_at_the_start() -> Result<()> {
    let mut server = RedisServer::start(&["--requirepass", "right"])?;
    let wrong = format!("redis://:s3cret@{}", server.address());
    let required =
        remembers().set("store", json!({"redis": {"secretRef": {"name": "redis"}, "required": true}}));
    let with =
        |scenario: &Scenario, url: &str| Ok::<_, anyhow::Error>(scenario.setup()?.env("REDIS_URL", url));
    let (optional, required) = (with(&remembers(), &wrong)?, with(&required, &wrong)?);
    let (mut child, mut log) = crate::takeover::another(&required, &crate::takeover::SERVE)?;
    let ended = crate::takeover::says(&mut log, "the store is required");
    let (supervisor, refused) = tokio::join!(optional.start(), ended);
    refused?;
    ensure!(!child.wait().await?.success(), "it starts without its store");
    let supervisor = supervisor?;
    assert_eq!(supervisor.ask("first").await?.result()?, "Noted.");
    let report = warnings(&supervisor).await?;
    ensure!(
        report.contains("in memory since the start") && report.contains("check the user and the password"),
        "{report}"
    );
    ensure!(!report.contains("s3cret") && !supervisor.log().contains("s3cret"), "it shows the password");
    server.kill()
}

/// A server that starts after the supervisor is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_late_is_waited_for() -> Result<()> {
    let mut server = RedisServer::start(&[])?;
    server.kill()?;
    let setup = setup(&remembers(), &server)?;
    let (mut child, mut log) = crate::takeover::another(&setup, &crate::takeover::SERVE)?;
    crate::takeover::says(&mut log, "waiting for Redis").await?;
    server.restart()?;
    crate::takeover::says(&mut log, "listening").await?;
    Ok(child.kill().await?)
}

#[tokio::test]
async fn a_missing_url_is_reported_at_once() -> Result<()> {
    let setup = remembers().setup()?;
    let (mut child, mut log) = crate::takeover::another(&setup, &crate::takeover::SERVE)?;
    crate::takeover::says(&mut log, "set REDIS_URL, in the Secret of spec.store.redis").await?;
    ensure!(!child.wait().await?.success(), "it starts without a URL");
    Ok(())
}
