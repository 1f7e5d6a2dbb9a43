//! Supervisors whose store is MongoDB: two processes on one server, and a server in trouble.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use caipe_fixtures::mongodb::MongodbServer;
use caipe_tests::resumable_stream::{Connection, Version};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor};
use serde_json::{Value, json};

use crate::kill;
use crate::replicas::{READ, times};

fn remembers() -> Scenario {
    Scenario::new()
        .answers("first", "Noted.")
        .answers("second", "You began with: {{ history[0].text }}")
        .turn(json!({"user": "long"}), json!({"repeat": {"token": "tick ", "times": 200}, "delay_ms": 10}))
        .set("store", json!({"mongodb": {"secretRef": {"name": "mongodb"}}}))
}

fn setup(scenario: &Scenario, server: &MongodbServer) -> Result<Setup> {
    Ok(scenario.setup()?.env("MONGODB_URI", server.uri()))
}

async fn state(supervisor: &Supervisor, task: &str) -> Result<Value> {
    Ok(supervisor.call("tasks/get", json!({"id": task})).await?["result"]["status"]["state"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_outlive_the_process_and_the_server() -> Result<()> {
    let mut server = MongodbServer::start(&[])?;
    let setup = setup(&remembers(), &server)?;
    let supervisor = setup.start().await?;
    let first = supervisor.ask("first: my name is Ada").await?;
    let (_, warnings) = supervisor.get("/internal/status").await?;
    ensure!(warnings.contains("replica set with one member"), "{warnings}");
    supervisor.kill().await?;
    server.kill()?;
    server.restart()?;
    ensure!(!setup.dir().join("data/caipe.sqlite3").exists(), "there is a second store");

    let supervisor = setup.start().await?;
    let second = supervisor.ask_in("second: what did I say?", Some(first.context())).await?;
    assert_eq!(second.result()?, "You began with: first: my name is Ada");
    assert_eq!(state(&supervisor, first.task()).await?, "completed");
    Ok(())
}

/// The run waits, readers learn why, and it ends once the server is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_while_the_server_is_gone() -> Result<()> {
    let mut server = MongodbServer::start(&[])?;
    let supervisor = setup(&remembers(), &server)?.start().await?;
    let mut stream = supervisor.stream("long", None).await?;
    let seen = stream.read_until(|event| event["artifact"]["name"] == "streaming_result").await?;
    let task = seen[0]["id"].as_str().context("no task")?.to_owned();
    server.kill()?;
    let unready = async || Ok(supervisor.get("/ready").await?.1.contains("the mongodb store"));
    supervisor.until("the supervisor says that MongoDB is gone", unready).await?;
    server.restart()?;
    supervisor.until_ready().await?;
    let over = async || Ok(state(&supervisor, &task).await? == "completed");
    supervisor.until("the run ends", over).await?;
    assert_eq!(supervisor.ask("first").await?.result()?, "Noted.");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_two_processes_serves_any_task() -> Result<()> {
    let server = MongodbServer::start(&[])?;
    let setup = setup(&remembers(), &server)?.env("CAIPE_SHUTDOWN_GRACE", "0");
    let (one, other) = tokio::join!(setup.start(), setup.start());
    let (one, other) = (one?, other?);
    let first = one.ask("first: my name is Ada").await?;
    let second = other.ask_in("second: what did I say?", Some(first.context())).await?;
    assert_eq!(second.result()?, "You began with: first: my name is Ada");
    for supervisor in [&one, &other] {
        for task in [first.task(), second.task()] {
            assert_eq!(state(supervisor, task).await?, "completed");
        }
    }
    cancels(&one, &other).await?;
    lags_little(&one, &other).await
}

/// A task of one process is canceled at the other.
async fn cancels(one: &Supervisor, other: &Supervisor) -> Result<()> {
    let mut stream = one.stream("long", None).await?;
    let seen = stream.read_until(|event| event["artifact"]["name"] == "streaming_result").await?;
    let task = seen[0]["id"].as_str().context("no task")?.to_owned();
    let canceled = other.call("tasks/cancel", json!({"id": task})).await?;
    assert_eq!(canceled["result"]["status"]["state"], "canceled", "{canceled}");
    assert_eq!(stream.rest().await?.last().context("no end")?["status"]["state"], "canceled");
    assert_eq!(state(one, &task).await?, "canceled");
    Ok(())
}

/// Text comes token by token at the other process, not when it is stored.
async fn lags_little(one: &Supervisor, other: &Supervisor) -> Result<()> {
    let mut here = Connection::ask(one.url(), Version::V0_3, "long").await?;
    let (_, task) = here.next().await.context("no task")?;
    let task = task["id"].as_str().context("no task")?;
    let there = Connection::resume(other.url(), Version::V0_3, task, Some(0)).await?;
    let (here, there) = tokio::join!(times(here), times(there));
    let mut lags: Vec<Duration> = here
        .iter()
        .filter_map(|(number, at)| Some(there.get(number)?.saturating_duration_since(*at)))
        .collect();
    lags.sort_unstable();
    ensure!(lags.len() > 150, "the streams share {} events", lags.len());
    let median = lags[lags.len() / 2];
    println!("the lag of {} events: median {median:?}, longest {:?}", lags.len(), lags.last());
    Ok(())
}

/// The answer of a process that is killed is completed by the other one.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_killed_process_is_completed_by_another() -> Result<()> {
    let server = MongodbServer::start(&[])?;
    let scenario = kill::scenario().set("store", json!({"mongodb": {"secretRef": {"name": "mongodb"}}}));
    let setup = setup(&scenario, &server)?;
    let (owner, other) = tokio::join!(setup.start(), setup.start());
    let (owner, other) = (owner?, other?);
    let clients = kill::begin(&owner).await?;
    let read = AtomicUsize::new(0);
    let ending = async {
        while read.load(Ordering::Relaxed) < READ {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        owner.signal("KILL").await?;
        Ok::<_, anyhow::Error>(Instant::now())
    };
    let (clients, begin) = tokio::join!(kill::follow(owner.url(), clients, &read, kill::LITTLE), ending);
    let (clients, begin) = (clients?, begin?);
    let clients = kill::follow(other.url(), clients, &AtomicUsize::new(0), usize::MAX).await?;
    println!("SIGKILL: the answer was complete after {:?}", begin.elapsed());
    kill::check(&other, &clients).await
}

#[tokio::test]
async fn a_missing_uri_and_a_standalone_server_are_reported() -> Result<()> {
    let setup = remembers().setup()?;
    let (mut child, mut log) = crate::takeover::another(&setup, &crate::takeover::SERVE)?;
    crate::takeover::says(&mut log, "set MONGODB_URI, in the Secret of spec.store.mongodb").await?;
    ensure!(!child.wait().await?.success(), "it starts without a URI");

    let server = MongodbServer::start(&["--standalone"])?;
    let required = json!({"mongodb": {"secretRef": {"name": "mongodb"}, "required": true}});
    let setup = remembers().set("store", required).setup()?;
    let setup = setup.env("MONGODB_URI", format!("mongodb://{}/?appName=s3cret", server.address()));
    let (mut child, mut log) = crate::takeover::another(&setup, &crate::takeover::SERVE)?;
    crate::takeover::says(&mut log, "start it with --replSet").await?;
    ensure!(!child.wait().await?.success(), "it starts without transactions");
    Ok(())
}
