//! A supervisor whose store is Redis: a real server, also in trouble.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use caipe_fixtures::redis::RedisServer;
use caipe_fixtures::tcp_proxy::Link;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor};
use serde_json::{Value, json};

use crate::metrics::{metrics_url, value};

fn remembers() -> Scenario {
    Scenario::new()
        .answers("first", "Noted.")
        .answers("second", "You began with: {{ history[0].text }}")
        .turn(json!({"user": "long"}), json!({"repeat": {"token": "tick ", "times": 400}, "delay_ms": 10}))
        .set("store", json!({"redis": {"secretRef": {"name": "redis"}}}))
}

fn setup(scenario: &Scenario, server: &RedisServer) -> Result<Setup> {
    setup_at(scenario, &server.url())
}

/// With metrics.
fn setup_at(scenario: &Scenario, url: &str) -> Result<Setup> {
    let setup = scenario.setup()?.env("REDIS_URL", url);
    Ok(setup.env("NO_COLOR", "1").env("CAIPE_METRICS_ADDRESS", "127.0.0.1:0"))
}

/// Whether the metrics report that the store can be used.
async fn is_available(supervisor: &Supervisor) -> Result<bool> {
    Ok(value(&metrics_url(supervisor)?, "store_available").await? > 0.5)
}

/// The memory of the server for data, in bytes.
pub(crate) fn used_memory(server: &RedisServer) -> Result<usize> {
    let memory = command(server, &["info", "memory"])?;
    let used = memory.lines().find_map(|line| line.strip_prefix("used_memory_dataset:"));
    used.context("no used_memory_dataset")?.trim().parse().context("no number")
}

/// Runs a command of Redis as an administrator does.
pub(crate) fn command(server: &RedisServer, words: &[&str]) -> Result<String> {
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
    ensure!(!is_available(&supervisor).await?, "the metrics do not show it");
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

/// Each is named in `/ready` and in the metrics; runs continue once it is corrected.
#[tokio::test(flavor = "multi_thread")]
async fn trouble_of_a_running_server_is_named_until_it_is_corrected() -> Result<()> {
    let server = RedisServer::start(&[])?;
    let supervisor = setup(&remembers(), &server)?.start().await?;
    let first = supervisor.ask("first: my name is Ada").await?;
    let cases: [(&[&str], &[&str], &str); 4] = [
        (&["config", "set", "maxmemory", "1"], &["config", "set", "maxmemory", "0"], "raise its maxmemory"),
        (&["replicaof", "127.0.0.1", "1"], &["replicaof", "no", "one"], "name the primary in the URL"),
        (
            &["config", "set", "requirepass", "s3cret"],
            &["--pass", "s3cret", "config", "set", "requirepass", ""],
            "check the user and the password",
        ),
        (
            &["acl", "setuser", "default", "-@write"],
            &["acl", "setuser", "default", "+@all"],
            "the user needs the commands",
        ),
    ];
    for (trouble, repair, wanted) in cases {
        let mut stream = supervisor.stream("long", None).await?;
        let seen = stream.read_until(|event| event["artifact"]["name"] == "streaming_result").await?;
        let task = seen[0]["id"].as_str().context("no task")?.to_owned();
        command(&server, trouble)?;
        // Clients that are connected keep their login.
        command(&server, &["--pass", "s3cret", "client", "kill", "type", "normal", "skipme", "yes"])?;
        let named = async || Ok(reasons(&supervisor).await?.contains(wanted));
        supervisor.until(wanted, named).await?;
        ensure!(!is_available(&supervisor).await?, "{wanted}: the metrics do not show it");
        command(&server, repair)?;
        supervisor.until_ready().await?;
        ensure!(is_available(&supervisor).await?, "{wanted}: the metrics show it still");
        let over = async || Ok(state(&supervisor, &task).await? == "completed");
        supervisor.until("the run under way ends", over).await?;
    }
    let second = supervisor.ask_in("second: what did I say?", Some(first.context())).await?;
    assert_eq!(second.result()?, "You began with: first: my name is Ada");
    ensure!(!supervisor.log().contains("s3cret"), "it shows the password");
    Ok(())
}

/// A slow network costs time and nothing else; one that drops packets is left for new connections.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_network_delays_and_a_dead_connection_is_replaced() -> Result<()> {
    let server = RedisServer::start(&[])?;
    let link = Link::to(&server.address()).await?;
    let supervisor = setup_at(&remembers(), &format!("redis://{}", link.address()))?.start().await?;
    link.slow(Duration::from_millis(100));
    let begin = Instant::now();
    assert_eq!(supervisor.ask("first").await?.result()?, "Noted.");
    ensure!(reasons(&supervisor).await?.contains("true"), "a slow store is not ready");
    println!("with 100 ms more per command, an answer takes {:?}", begin.elapsed());
    link.slow(Duration::ZERO);

    let mut stream = supervisor.stream("long", None).await?;
    let seen = stream.read_until(|event| event["artifact"]["name"] == "streaming_result").await?;
    let task = seen[0]["id"].as_str().context("no task")?.to_owned();
    link.swallow();
    let unready = async || Ok(reasons(&supervisor).await?.contains("the redis store does not answer"));
    supervisor.until("the supervisor says that Redis does not answer", unready).await?;
    ensure!(!is_available(&supervisor).await?, "the metrics do not show it");
    link.mend();
    let begin = Instant::now();
    supervisor.until_ready().await?;
    let over = async || Ok(state(&supervisor, &task).await? == "completed");
    supervisor.until("the run ends", over).await?;
    println!("after the connections were dead, the run was over {:?} later", begin.elapsed());
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
    let counted = value(&metrics_url(&supervisor)?, "store_restrictions").await?;
    ensure!((counted - 2.0).abs() < 0.5, "{counted} restrictions in the metrics");
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
