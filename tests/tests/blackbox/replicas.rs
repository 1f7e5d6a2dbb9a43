//! Several supervisors on one Redis are one supervisor to every client, also while they are killed, stopped and paused.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use caipe_fixtures::redis::RedisServer;
use caipe_tests::programs;
use caipe_tests::random::{SeededRandom, seed};
use caipe_tests::resumable_stream::{Connection, Version};
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::{Answer, text_of};
use caipe_tests::supervisor::{Setup, Supervisor};
use serde_json::{Value, json};

use crate::approval::decide;
use crate::{echo, kill};

/// How long the runs of a dead replica may wait.
const TAKEOVER: Duration = Duration::from_secs(10);

/// The rounds of requests at random replicas.
const ROUNDS: usize = 3;

/// What four readers have read together when the owner ends: a part of the answer.
pub(crate) const READ: usize = 100;

/// Replicas of one supervisor, and their server.
struct Replicas {
    _server: RedisServer,
    running: Vec<Supervisor>,
    chance: SeededRandom,
}

impl Replicas {
    async fn start(setup: Setup, count: usize) -> Result<Self> {
        let server = RedisServer::start(&[])?;
        let seed = seed("CAIPE_REPLICAS_SEED");
        println!("CAIPE_REPLICAS_SEED={seed} chooses the same replicas again");
        let setup = setup.env("REDIS_URL", server.url()).env("CAIPE_SHUTDOWN_GRACE", "0");
        let starting = futures::future::join_all((0..count).map(|_| setup.start()));
        let running = starting.await.into_iter().collect::<Result<_>>()?;
        Ok(Self { _server: server, running, chance: SeededRandom(seed) })
    }

    fn any(&mut self) -> &Supervisor {
        let index = self.chance.below(self.running.len());
        &self.running[index]
    }

    /// Another replica than this one.
    fn other(&mut self, than: &str) -> &Supervisor {
        let others: Vec<usize> =
            (0..self.running.len()).filter(|index| self.running[*index].url() != than).collect();
        &self.running[others[self.chance.below(others.len())]]
    }

    /// The task as each replica reports it, which must be the same.
    async fn task(&self, id: &str) -> Result<Value> {
        let mut tasks = Vec::new();
        for replica in &self.running {
            tasks.push(replica.call("tasks/get", json!({"id": id})).await?["result"].clone());
        }
        ensure!(
            tasks.windows(2).all(|pair| pair[0] == pair[1]),
            "the replicas report different tasks: {tasks:#?}"
        );
        tasks.pop().context("no replica")
    }
}

pub(crate) fn on_redis(scenario: Scenario) -> Result<Setup> {
    scenario.set("store", json!({"redis": {"secretRef": {"name": "redis"}}})).setup()
}

/// Chats, a plan, a form, an approval, and an answer that takes two seconds.
fn everything() -> Result<Setup> {
    let form = json!({"name": "CAIPEAgentResponse", "arguments": {"response": "Which repository?", "metadata":
        {"input_fields": [{"field_name": "repo", "field_description": "Repository", "required": true}]}}});
    let mut scenario = echo(&["jira", "github"])?
        .asks("write", &["jira"])
        .asks("show", &["github", "github"])
        .turn(json!({"user": "create", "turn": 0}), json!({"calls": [form]}))
        .answers("first", "Noted.")
        .answers("second", "You began with: {{ history[0].text }}")
        .turn(json!({"user": "long"}), json!({"repeat": {"token": "tick ", "times": 200}, "delay_ms": 10}))
        .turn(json!({"has_result": true}), json!({"text": "got {{ last_result }}"}));
    scenario.change_agent("jira", "requireApproval", json!(["ec*"]));
    on_redis(scenario)
}

#[tokio::test(flavor = "multi_thread")]
async fn any_replica_serves_any_task() -> Result<()> {
    let mut replicas = Replicas::start(everything()?, 3).await?;
    for _ in 0..ROUNDS {
        chat(&mut replicas).await?;
        plan_with_approval(&mut replicas).await?;
        form(&mut replicas).await?;
        cancel(&mut replicas).await?;
    }
    Ok(())
}

async fn chat(replicas: &mut Replicas) -> Result<()> {
    let first = replicas.any().ask("first: my name is Ada").await?;
    let second = replicas.any().ask_in("second: what did I say?", Some(first.context())).await?;
    assert_eq!(second.result()?, "You began with: first: my name is Ada");
    let shown = replicas.any().ask("show it").await?;
    ensure!(shown.result()?.contains("github says: github: show it"), "{}", shown.outline());
    for task in [first.task(), second.task(), shown.task()] {
        assert_eq!(replicas.task(task).await?["status"]["state"], "completed");
    }
    Ok(())
}

async fn plan_with_approval(replicas: &mut Replicas) -> Result<()> {
    let asking = replicas.any();
    let (url, asked) = (asking.url().to_owned(), asking.ask("write it").await?);
    assert_eq!(asked.state(), "input-required", "{}", asked.outline());
    assert_eq!(replicas.task(asked.task()).await?["status"]["state"], "input-required");
    let allowed = decide(replicas.other(&url), &asked, json!({"type": "approve"})).await?;
    assert_eq!(allowed.result()?, "jira says: jira: write it");
    assert_eq!(replicas.task(asked.task()).await?["status"]["state"], "completed");
    // Decided once, wherever the second click arrives.
    let again = decide(replicas.any(), &asked, json!({"type": "approve"})).await;
    ensure!(again.is_err(), "a decision was taken twice");
    Ok(())
}

async fn form(replicas: &mut Replicas) -> Result<()> {
    let asking = replicas.any();
    let (url, asked) = (asking.url().to_owned(), asking.ask("create one").await?);
    assert_eq!(asked.state(), "input-required", "{}", asked.outline());
    let other = replicas.other(&url);
    let filled = other.stream("repo: r1", Some(asked.context())).await?.rest().await?;
    let filled = other.checked_after(&asked, Answer::new(filled))?;
    ensure!(filled.result()?.contains("repo=r1"), "{}", filled.outline());
    assert_eq!(replicas.task(asked.task()).await?["status"]["state"], "completed");
    Ok(())
}

async fn cancel(replicas: &mut Replicas) -> Result<()> {
    let running = replicas.any();
    let (url, mut stream) = (running.url().to_owned(), running.stream("long", None).await?);
    let seen = stream.read_until(|event| event["artifact"]["name"] == "streaming_result").await?;
    let task = seen[0]["id"].as_str().context("no task")?.to_owned();
    let canceled = replicas.other(&url).call("tasks/cancel", json!({"id": task})).await?;
    assert_eq!(canceled["result"]["status"]["state"], "canceled", "{canceled}");
    let rest = stream.rest().await?;
    assert_eq!(rest.last().context("no end")?["status"]["state"], "canceled");
    assert_eq!(replicas.task(&task).await?["status"]["state"], "canceled");
    Ok(())
}

/// The time of each event of a stream, until its end.
pub(crate) async fn times(mut connection: Connection) -> BTreeMap<u64, Instant> {
    let mut times = BTreeMap::new();
    while let Some((number, _)) = connection.next().await {
        times.extend(number.map(|number| (number, Instant::now())));
    }
    times
}

/// Text comes token by token at another replica, not when it is stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_at_another_replica_lags_little() -> Result<()> {
    let replicas = Replicas::start(everything()?, 2).await?;
    let [one, other] = replicas.running.as_slice() else { anyhow::bail!("not two replicas") };
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

/// Ends the owner with this signal in the middle of an answer, and returns how long its readers wait for the next event.
async fn taken_over(signal: &str) -> Result<Duration> {
    let replicas = Replicas::start(on_redis(kill::scenario())?, 2).await?;
    let Replicas { _server, running, .. } = replicas;
    let mut running = running.into_iter();
    let (owner, other) = (running.next().context("no owner")?, running.next().context("no other")?);
    let clients = kill::begin(&owner).await?;
    let read = AtomicUsize::new(0);
    let ending = async {
        while read.load(Ordering::Relaxed) < READ {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        owner.signal(signal).await?;
        Ok::<_, anyhow::Error>(Instant::now())
    };
    let (clients, begin) = tokio::join!(kill::follow(owner.url(), clients, &read, kill::LITTLE), ending);
    let (clients, begin) = (clients?, begin?);
    let clients = kill::follow(other.url(), clients, &AtomicUsize::new(0), usize::MAX).await?;
    let elapsed = begin.elapsed();
    kill::check(&other, &clients).await?;
    println!("SIG{signal}: the answer was complete after {elapsed:?}");
    Ok(elapsed)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_killed_replica_is_completed_by_another() -> Result<()> {
    taken_over("KILL").await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_replica_that_stops_is_completed_at_once() -> Result<()> {
    let elapsed = taken_over("TERM").await?;
    ensure!(elapsed < TAKEOVER / 2, "it took {elapsed:?}");
    Ok(())
}

/// One tool call that must not be repeated, of three seconds.
fn noting(notes: &Path) -> Result<Setup> {
    let server = programs::fixture_mcp()?;
    let notes = notes.display().to_string();
    let scenario = Scenario::new()
        .agent("jira", &server, &["--mode", "noting", "--state", &notes])
        .agent_calls("jira", "note", json!({"text": "{{ user }}", "ms": 3000}))
        .asks("note", &["jira"]);
    on_redis(scenario)
}

/// A replica that is paused for longer than its lease neither writes nor calls a tool again.
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_replica_repeats_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let notes = directory.path().join("notes");
    let replicas = Replicas::start(noting(&notes)?, 2).await?;
    let [owner, other] = replicas.running.as_slice() else { anyhow::bail!("not two replicas") };
    let mut stream = owner.stream("note it", None).await?;
    let seen = stream.read_until(|event| text_of(event).contains("Jira: Calling tool: Note")).await?;
    let task = seen[0]["id"].as_str().context("no task")?.to_owned();
    let calls = || std::fs::read_to_string(&notes).unwrap_or_default().lines().count();
    owner.until("the tool runs", async || Ok(calls() == 1)).await?;
    owner.signal("STOP").await?;
    let over = async || {
        let task = other.call("tasks/get", json!({"id": task})).await?;
        Ok(task["result"]["status"]["state"] == "completed")
    };
    let begin = Instant::now();
    let ended = other.until("the other replica ends the run", over).await;
    owner.signal("CONT").await?;
    ended?;
    println!("SIGSTOP: the run was over after {:?}", begin.elapsed());
    let rest = stream.rest().await?;
    assert_eq!(
        rest.last().context("no end")?["status"]["state"],
        "completed",
        "its reader follows the other"
    );
    replicas.task(&task).await?;
    assert_eq!(calls(), 1, "the tool ran twice");
    // Both continue to serve.
    for replica in &replicas.running {
        replica.ask("note that").await?;
    }
    Ok(())
}

/// A replica that stops waits for a tool call that must not be repeated, not for the whole grace period. Then another replica
/// continues the run, and readers of other tasks are sent there at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stops_hands_its_runs_over_after_their_tool_calls() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let notes = directory.path().join("notes");
    let server = RedisServer::start(&[])?;
    let setup = noting(&notes)?.env("REDIS_URL", server.url()).env("CAIPE_SHUTDOWN_GRACE", "600");
    let (owner, other) = (setup.start().await?, setup.start().await?);
    let id = |seen: &[Value]| seen[0]["id"].as_str().map(str::to_owned).context("no task");
    let is_noting = |event: &Value| text_of(event).contains("Jira: Calling tool: Note");
    let mut elsewhere = other.stream("note that", None).await?;
    let followed = id(&elsewhere.read_until(is_noting).await?)?;
    let mut followed = Connection::resume(owner.url(), Version::V0_3, &followed, Some(0)).await?;
    followed.next().await.context("the other replica's task is unknown here")?;
    let mut own = owner.stream("note this", None).await?;
    let task = id(&own.read_until(is_noting).await?)?;
    let calls = || std::fs::read_to_string(&notes).unwrap_or_default().lines().count();
    owner.until("both tools run", async || Ok(calls() == 2)).await?;

    let begin = Instant::now();
    let stopping = tokio::spawn(owner.stop());
    let mut last = Value::Null;
    while let Some((_, event)) = followed.next().await {
        last = event;
    }
    ensure!(last["final"] != true, "the stream of the other replica's task ended with the task: {last}");
    let rest = own.rest().await?;
    ensure!(rest.iter().all(|event| event["final"] != true), "the run ended where it began: {rest:#?}");
    assert_eq!(stopping.await??, Some(0));
    println!("the replica stopped after {:?}", begin.elapsed());
    let mut resumed = Connection::resume(other.url(), Version::V0_3, &task, Some(0)).await?;
    let mut text = String::new();
    while let Some((_, event)) = resumed.next().await {
        text.push_str(&event.to_string());
    }
    println!("its run was over after {:?}", begin.elapsed());
    let ended = other.call("tasks/get", json!({"id": task})).await?;
    assert_eq!(ended["result"]["status"]["state"], "completed", "{ended:#}");
    ensure!(!text.contains("interrupted"), "the tool's result was lost: {text}");
    assert_eq!(calls(), 2, "a tool ran twice");
    elsewhere.rest().await.map(drop)
}
