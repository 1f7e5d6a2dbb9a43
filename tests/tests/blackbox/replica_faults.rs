//! Conversations with forms and approvals at several replicas on one Redis, while replicas are killed, paused, cut off and slowed,
//! and Redis restarts. Nothing is lost, no tool that must not be repeated runs twice, and the history has no contradiction.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use caipe_fixtures::redis::RedisServer;
use caipe_fixtures::tcp_proxy::Link;
use caipe_tests::history::{self, History, Isolation, Monitor, Read, StoreRecord};
use caipe_tests::programs;
use caipe_tests::random::{SeededRandom, seed};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor, unique};
use serde_json::{Value, json};

use crate::kill::{Client, artifacts};
use crate::push::{Receiver, anywhere, tells_end};
use crate::redis::used_memory;
use crate::replicas::on_redis;

/// Longest time until a client has what it asked for. A run may be taken over several times.
const PATIENCE: Duration = Duration::from_mins(2);

/// A client leaves a connection that is silent for so long.
const SILENCE: Duration = Duration::from_secs(6);

/// How long a replica may report an older state than the store has, while it can reach the store.
const TOLERANCE: Duration = Duration::from_secs(2);

/// When a replica follows the store again after its connections were lost: a subscription is tested every 5 s, given up after 5 s
/// more, and made again within 3 s.
const RECONNECTION: Duration = Duration::from_secs(14);

/// The text in place of the result of a call whose outcome is unknown.
const UNKNOWN: &str = "did not complete (session was interrupted)";

/// What a campaign does.
struct Plan {
    replicas: usize,
    conversations: usize,
    at_once: usize,
    /// The time between two faults.
    interval: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// A replica is killed and started again.
    Kill,
    /// A replica is stopped for longer than its leases.
    Pause,
    /// All connections of a replica to Redis end, and new ones are refused.
    Cut,
    /// Everything between a replica and Redis takes longer.
    Slow,
    /// Connections of a replica to Redis stay open and carry nothing.
    Swallow,
    /// Redis is killed and started again with its data.
    Redis,
}

const FAULTS: [Fault; 6] = [Fault::Kill, Fault::Pause, Fault::Cut, Fault::Slow, Fault::Swallow, Fault::Redis];

/// What the clients share.
struct Clients {
    urls: Vec<String>,
    http: reqwest::Client,
    hook: Receiver,
    reads: Mutex<Vec<Read>>,
    resets: AtomicUsize,
    unknown: AtomicUsize,
}

impl Clients {
    fn any(&self, chance: &mut SeededRandom) -> &str {
        &self.urls[chance.below(self.urls.len())]
    }

    /// A call at random replicas until one answers it. A message with the same id acts once.
    async fn call(&self, chance: &mut SeededRandom, method: &str, params: &Value) -> Result<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let until = Instant::now() + PATIENCE;
        loop {
            let (url, begin) = (self.any(chance), history::now());
            let request = self.http.post(url).header("content-type", "application/json").body(body.clone());
            let answer: Option<Value> = match request.send().await {
                Ok(response) => response.json().await.ok(),
                Err(_) => None,
            };
            if let Some(result) = answer.as_ref().and_then(|answer| answer.get("result")) {
                if method == "tasks/get" {
                    self.note(url, begin, result);
                }
                return Ok(result.clone());
            }
            ensure!(Instant::now() < until, "{method} {params} is not answered: {answer:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn note(&self, replica: &str, begin: u64, task: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (task, state) = (text(&task["id"]), text(&task["status"]["state"]));
        let read = Read { begin, end: history::now(), replica: replica.to_owned(), task, state };
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).push(read);
    }

    /// Follows a task at random replicas until it has this state, and compares what was read with the task.
    async fn follow(&self, chance: &mut SeededRandom, client: &mut Client, wanted: &str) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        client.state.clear();
        while client.state != wanted {
            ensure!(Instant::now() < until, "the task is not {wanted}: {client:?}");
            ensure!(!["failed", "canceled"].contains(&client.state.as_str()), "{client:?}");
            client.read(self.any(chance), SILENCE).await.with_context(|| format!("{client:?}"))?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        loop {
            let task = self.call(chance, "tasks/get", &json!({"id": client.task})).await?;
            // A replica that is cut off may have the task as it was.
            if task["status"]["state"] == wanted {
                ensure!(artifacts(&task) == client.artifacts, "the client has {client:?} of {task:#}");
                return Ok(());
            }
            ensure!(Instant::now() < until, "a replica still reports {task:#}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// An answer to a waiting task, which is then followed to its end.
    async fn answer(&self, chance: &mut SeededRandom, client: &mut Client, part: Value) -> Result<()> {
        let message = message(&[part], &Value::Null, Some(&client.task));
        let params = json!({"message": message, "configuration": {"blocking": false}});
        self.call(chance, "message/send", &params).await?;
        self.follow(chance, client, "completed").await
    }

    /// A new task and its conversation.
    async fn ask(&self, chance: &mut SeededRandom, text: &str, context: &Value) -> Result<(Client, Value)> {
        let message = message(&[json!({"kind": "text", "text": text})], context, None);
        let hook = json!({"url": self.hook.url()});
        let configuration = json!({"blocking": false, "pushNotificationConfig": hook});
        let params = json!({"message": message, "configuration": configuration});
        let task = self.call(chance, "message/send", &params).await?;
        let mut client = Client::new(task["id"].as_str().with_context(|| format!("no task: {task}"))?);
        if let Some(state) = task["status"]["state"].as_str() {
            state.clone_into(&mut client.state);
        }
        Ok((client, task["contextId"].clone()))
    }

    /// A question that is approved, one that is answered by a form, and one about the conversation. Returns the tasks whose
    /// ends are notified.
    async fn converse(&self, number: usize, seed: u64) -> Result<Vec<String>> {
        let chance = &mut SeededRandom(seed ^ number as u64);
        let (mut noted, context) = self.ask(chance, &format!("note {number}"), &Value::Null).await?;
        self.follow(chance, &mut noted, "input-required").await?;
        let approve = json!({"kind": "data", "data": {"resume": {"decisions": [{"type": "approve"}]}}});
        self.answer(chance, &mut noted, approve).await?;
        let (mut created, _) = self.ask(chance, "create one", &context).await?;
        self.follow(chance, &mut created, "input-required").await?;
        self.answer(chance, &mut created, json!({"kind": "text", "text": format!("repo: r{number}")}))
            .await?;
        ensure_text(&created, &format!("repo=r{number}"))?;
        let (mut second, _) = self.ask(chance, "second", &context).await?;
        // The end in the response is not notified.
        let is_notified = second.state != "completed";
        self.follow(chance, &mut second, "completed").await?;
        ensure_text(&second, &format!("You began with: note {number}"))?;
        let mut clients = vec![noted, created, second];
        let resets = clients.iter().map(|client| client.resets).sum();
        self.resets.fetch_add(resets, Ordering::Relaxed);
        self.unknown.fetch_add(usize::from(format!("{clients:?}").contains(UNKNOWN)), Ordering::Relaxed);
        clients.truncate(if is_notified { 3 } else { 2 });
        Ok(clients.into_iter().map(|client| client.task).collect())
    }
}

fn ensure_text(client: &Client, wanted: &str) -> Result<()> {
    let texts = &client.artifacts;
    ensure!(texts.iter().any(|(_, text)| text.contains(wanted)), "{wanted:?} is not in {texts:#?}");
    Ok(())
}

fn message(parts: &[Value], context: &Value, task: Option<&str>) -> Value {
    let mut message =
        json!({"role": "user", "kind": "message", "messageId": unique("message"), "parts": parts});
    if context.is_string() {
        message["contextId"] = context.clone();
    }
    if let Some(task) = task {
        message["taskId"] = json!(task);
    }
    message
}

/// The replicas, what is between them and Redis, and Redis.
struct System {
    running: Vec<Supervisor>,
    setups: Vec<Setup>,
    links: Vec<Link>,
    server: RedisServer,
    monitor: Monitor,
    isolations: Vec<Isolation>,
    faults: BTreeMap<Fault, usize>,
    chance: SeededRandom,
}

impl System {
    async fn start(setup: &Setup, replicas: usize, seed: u64) -> Result<Self> {
        let server = RedisServer::start(&[])?;
        let monitor = Monitor::start(&server.address()).await?;
        let (mut running, mut setups, mut links) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..replicas {
            let link = Link::to(&server.address()).await?;
            let setup = setup.clone().env("REDIS_URL", format!("redis://{}", link.address()));
            running.push(setup.start().await?);
            setups.push(setup);
            links.push(link);
        }
        let (isolations, faults, chance) = (Vec::new(), BTreeMap::new(), SeededRandom(seed));
        Ok(Self { running, setups, links, server, monitor, isolations, faults, chance })
    }

    /// Faults of all kinds in a random order, again and again. Sets `all` after the first time.
    async fn torment(&mut self, interval: Duration, all: &AtomicBool) -> Result<()> {
        loop {
            let mut kinds = FAULTS.to_vec();
            while !kinds.is_empty() {
                tokio::time::sleep(interval).await;
                let kind = kinds.swap_remove(self.chance.below(kinds.len()));
                let victim = self.chance.below(self.running.len());
                self.inflict(kind, victim).await.with_context(|| format!("{kind:?}"))?;
                *self.faults.entry(kind).or_default() += 1;
            }
            all.store(true, Ordering::Relaxed);
        }
    }

    async fn inflict(&mut self, fault: Fault, victim: usize) -> Result<()> {
        let (begin, link) = (history::now(), &self.links[victim]);
        let mut isolated = Some(self.running[victim].url().to_owned());
        match fault {
            Fault::Kill => {
                let setup = self.setups[victim].clone().listening_at(self.running[victim].url());
                self.running[victim].signal("KILL").await?;
                self.running[victim] = setup.start_unready().await?;
            }
            Fault::Pause => {
                self.running[victim].signal("STOP").await?;
                tokio::time::sleep(Duration::from_secs(10)).await;
                self.running[victim].signal("CONT").await?;
            }
            Fault::Cut => {
                link.cut();
                tokio::time::sleep(Duration::from_millis(200 + self.chance.below(3000) as u64)).await;
                link.mend();
            }
            Fault::Slow => {
                link.slow(Duration::from_millis(20 + self.chance.below(200) as u64));
                tokio::time::sleep(Duration::from_secs(2)).await;
                link.slow(Duration::ZERO);
            }
            Fault::Swallow => {
                link.swallow();
                tokio::time::sleep(Duration::from_secs(6)).await;
                link.mend();
            }
            Fault::Redis => {
                isolated = None;
                tokio::task::block_in_place(|| self.server.kill())?;
                // Nothing may pass before the record of the server continues.
                self.links.iter().for_each(Link::cut);
                tokio::task::block_in_place(|| self.server.restart())?;
                self.monitor.resume(&self.server.address()).await?;
                self.links.iter().for_each(Link::mend);
            }
        }
        let end = history::now() + u64::try_from(RECONNECTION.as_micros()).unwrap_or_default();
        self.isolations.push(Isolation { replica: isolated, begin, end });
        Ok(())
    }
}

/// A tool call that needs an approval and must not be repeated, a form, and a question about the conversation.
fn scenario(notes: &Path) -> Result<Setup> {
    let server = programs::fixture_mcp()?;
    let notes = notes.display().to_string();
    let form = json!({"name": "CAIPEAgentResponse", "arguments": {"response": "Which repository?", "metadata":
        {"input_fields": [{"field_name": "repo", "field_description": "Repository", "required": true}]}}});
    let mut scenario = Scenario::new()
        .agent("jira", &server, &["--mode", "noting", "--state", &notes])
        .agent_calls("jira", "note", json!({"text": "{{ user }}", "ms": 100}))
        .answers("second", "You began with: {{ history[0].text }}")
        .turn(json!({"user": "create", "turn": 0}), json!({"calls": [form]}))
        .turn(json!({"user": "create"}), json!({"text": "got {{ last_result }}", "delay_ms": 10}))
        .asks("note", &["jira"]);
    scenario.change_agent("jira", "requireApproval", json!(["note"]));
    let setup = on_redis(scenario)?.env("CAIPE_SHUTDOWN_GRACE", "0");
    Ok(setup.env("CAIPE_PUSH_ALLOW", "127.0.0.1"))
}

/// Talks and torments until all conversations and all kinds of faults are over, and checks everything.
async fn run(plan: Plan) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let notes = directory.path().join("notes");
    let seed = seed("CAIPE_REPLICAS_SEED");
    println!("CAIPE_REPLICAS_SEED={seed} chooses the same faults again");
    let mut system = System::start(&scenario(&notes)?, plan.replicas, seed).await?;
    let clients = Clients {
        urls: system.running.iter().map(|replica| replica.url().to_owned()).collect(),
        http: reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(12)).build()?,
        hook: Receiver::start(anywhere(), false).await?,
        reads: Mutex::default(),
        resets: AtomicUsize::new(0),
        unknown: AtomicUsize::new(0),
    };
    let (all, next, begin) = (AtomicBool::new(false), AtomicUsize::new(0), Instant::now());
    let talk = async || {
        let mut talked = Vec::new();
        while !all.load(Ordering::Relaxed) || next.load(Ordering::Relaxed) < plan.conversations {
            let (number, begin) = (next.fetch_add(1, Ordering::Relaxed), Instant::now());
            let tasks =
                clients.converse(number, seed).await.with_context(|| format!("conversation {number}"))?;
            talked.push((tasks, begin.elapsed()));
        }
        Ok::<_, anyhow::Error>(talked)
    };
    let talking = futures::future::try_join_all((0..plan.at_once).map(|_| talk()));
    let talked: Vec<(Vec<String>, Duration)> = tokio::select! {
        talked = talking => talked?.into_iter().flatten().collect(),
        failed = system.torment(plan.interval, &all) => return failed,
    };
    let elapsed = begin.elapsed();
    let calls = check_calls(&notes, talked.len(), clients.unknown.load(Ordering::Relaxed))?;
    let pushes = check_pushes(&clients.hook, &talked).await?;
    let history = History {
        store: system.monitor.records(),
        reads: clients.reads.into_inner().unwrap_or_else(PoisonError::into_inner),
        isolations: system.isolations,
    };
    check_history(&history)?;
    let tasks = 3 * talked.len();
    let memory = used_memory(&system.server)? / tasks;
    println!("{tasks} tasks take {memory} bytes of Redis each, with their conversation");
    let mut times: Vec<Duration> = talked.iter().map(|(_, time)| *time).collect();
    times.sort_unstable();
    println!(
        "{} conversations at {} replicas in {elapsed:?}: 0 lost; {calls}; {pushes}; {} resets of text; median {:?}, longest {:?}; faults {:?}",
        talked.len(),
        plan.replicas,
        clients.resets.load(Ordering::Relaxed),
        times[times.len() / 2],
        times.last(),
        system.faults,
    );
    Ok(())
}

/// No call was made twice, and those that were not made are reported as unknown.
fn check_calls(notes: &Path, conversations: usize, unknown: usize) -> Result<String> {
    let text = std::fs::read_to_string(notes)?;
    let mut lines: Vec<&str> = text.lines().collect();
    let calls = lines.len();
    lines.sort_unstable();
    lines.dedup();
    ensure!(lines.len() == calls, "{} calls ran twice", calls - lines.len());
    ensure!(calls + unknown >= conversations, "{calls} calls, {unknown} unknown outcomes");
    Ok(format!("{calls} tool calls, none twice, {unknown} with an unknown outcome"))
}

/// The end of each task was delivered at least once.
async fn check_pushes(hook: &Receiver, talked: &[(Vec<String>, Duration)]) -> Result<String> {
    let ends = || {
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for (_, body) in hook.all().iter().filter(|(_, body)| tells_end(body)) {
            *ends.entry(body["id"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        ends
    };
    let tasks: Vec<&String> = talked.iter().flat_map(|(tasks, _)| tasks).collect();
    let until = Instant::now() + PATIENCE;
    loop {
        let ends = ends();
        let missing: Vec<_> = tasks.iter().filter(|task| !ends.contains_key(**task)).collect();
        if missing.is_empty() {
            break;
        }
        ensure!(Instant::now() < until, "the ends of these tasks are not notified: {missing:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let again = ends().values().filter(|count| **count > 1).count();
    Ok(format!("{} ends notified, {again} more than once", tasks.len()))
}

/// The history has no contradiction, and would have one with a forged commit or read.
fn check_history(history: &History) -> Result<()> {
    let report = history::check(history, TOLERANCE);
    ensure!(report.faults.is_empty(), "the history is contradictory: {:#?}", report.faults);
    ensure!(report.commits > 0 && report.reads > 0, "{report:?}");
    let tokens = history.store.iter().filter_map(fence).map(|fence| fence.token).max();
    println!(
        "history: {} commits, {} reads, no contradiction; longest delay {:?}, {} reads of replicas that were cut off; highest token {tokens:?}",
        report.commits, report.reads, report.stalest, report.excused
    );
    let mutations: [fn(&mut History) -> Option<()>; 3] = [older_token, second_owner, impossible_state];
    for (index, mutate) in mutations.into_iter().enumerate() {
        let mut forged = history.clone();
        mutate(&mut forged).with_context(|| format!("mutation {index} has nothing to change"))?;
        let found = history::check(&forged, TOLERANCE).faults;
        ensure!(!found.is_empty(), "mutation {index} is not noticed");
    }
    Ok(())
}

fn fence(record: &StoreRecord) -> Option<history::Fence> {
    match record {
        StoreRecord::Commit(commit) => commit.fence,
        StoreRecord::Gap(_) => None,
    }
}

/// A commit of an earlier owner, after one of its successor.
fn older_token(history: &mut History) -> Option<()> {
    let newest =
        history.store.iter().rposition(|record| fence(record).is_some_and(|fence| fence.token > 0))?;
    let StoreRecord::Commit(mut late) = history.store.get(newest)?.clone() else { return None };
    late.fence = late.fence.map(|fence| history::Fence { token: fence.token - 1, ..fence });
    history.store.insert(newest + 1, StoreRecord::Commit(late));
    Some(())
}

/// The next commit of the same token, from another process.
fn second_owner(history: &mut History) -> Option<()> {
    let last =
        history.store.iter().rposition(|record| fence(record).is_some_and(|fence| fence.number > 1))?;
    let StoreRecord::Commit(commit) = history.store.get_mut(last)? else { return None };
    "another".clone_into(&mut commit.sender);
    Some(())
}

/// A read of a state that the task did not have.
fn impossible_state(history: &mut History) -> Option<()> {
    "rejected".clone_into(&mut history.reads.last_mut()?.state);
    Some(())
}

/// Every kind of fault once.
#[tokio::test(flavor = "multi_thread")]
async fn conversations_survive_each_kind_of_fault() -> Result<()> {
    run(Plan { replicas: 2, conversations: 20, at_once: 4, interval: Duration::from_millis(500) }).await
}

async fn campaign(replicas: usize) -> Result<()> {
    run(Plan { replicas, conversations: 500, at_once: 12, interval: Duration::from_secs(2) }).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes minutes; `make campaign` runs it"]
async fn replicas_campaign_conversations_at_two_replicas_survive_many_faults() -> Result<()> {
    campaign(2).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes minutes; `make campaign` runs it"]
async fn replicas_campaign_conversations_at_three_replicas_survive_many_faults() -> Result<()> {
    campaign(3).await
}
