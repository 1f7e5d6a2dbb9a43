//! A rich run whose supervisor or agent dies at every write, after every write, and at every event that a client reads.

use std::collections::BTreeMap;
use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use caipe_a2a::card::CardBuilder;
use caipe_a2a::client::{CardCache, http_builder};
use caipe_a2a::model::{Artifact, Event, Message, Task, TaskState};
use caipe_a2a::server::{ServerOptions, TaskLog, router};
use caipe_engine::AgentName;
use caipe_fixtures::redis::RedisServer;
use caipe_store::{Commit, Follower, Store, StoreError, TaskFilter, TaskPhase};
use caipe_supervisor::agents::InProcessBackend;
use caipe_supervisor::binding::{ACTIVITY_EXTENSION, Presentation};
use caipe_supervisor::delegation::AgentBackend;
use caipe_supervisor::http::TaskApi;
use caipe_supervisor::remote::{RemoteBackend, RemoteTarget};
use caipe_supervisor::run::Runs;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::gated::{Gate, Gated};
use crate::storage::{Storage, StorageServer};
use crate::support::{PATIENCE, TestSetup, Tools, decisions, message, runs_of, to_task};

/// A plan, three agents in parallel, of which two need an approval and one is remote, and an answer of several words.
const SCRIPT: &str = r#"
turns:
  - { when: { agent: reader, turn: 0 }, reply: { delay_ms: 1, text: Reader begins., calls: [{ name: add, arguments: { a: 1, b: 2 } }] } }
  - { when: { agent: reader }, reply: { delay_ms: 1, text: "read {{ last_result }}" } }
  - { when: { agent: writer, turn: 0 }, reply: { calls: [{ name: echo, arguments: { text: danger } }] } }
  - { when: { agent: writer }, reply: { delay_ms: 1, text: "wrote {{ last_result }}" } }
  - { when: { agent: distant, turn: 0 }, reply: { delay_ms: 1, text: Distant begins., calls: [{ name: add, arguments: { a: 3, b: 4 } }] } }
  - { when: { agent: distant, turn: 1 }, reply: { calls: [{ name: echo, arguments: { text: far } }] } }
  - { when: { agent: distant }, reply: { delay_ms: 1, text: "fetched {% for one in results %}{{ one.content }} and {% endfor %}more" } }
  - when: { turn: 0 }
    reply:
      delay_ms: 1
      text: I plan this first.
      calls:
        - name: write_todos
          arguments:
            todos:
              - { content: "[Reader] read", status: in_progress }
              - { content: "[Writer] write", status: pending }
              - { content: "[Distant] fetch", status: pending }
        - { name: task, arguments: { subagent_type: reader, description: read } }
        - { name: task, arguments: { subagent_type: writer, description: write } }
        - { name: task, arguments: { subagent_type: distant, description: fetch } }
  - when: { turn: 1 }
    reply:
      calls:
        - name: write_todos
          arguments:
            todos:
              - { content: "[Reader] read", status: completed }
              - { content: "[Writer] write", status: completed }
              - { content: "[Distant] fetch", status: completed }
  - { reply: { delay_ms: 1, text: "{% for one in results %}{{ one.content }} / {% endfor %}in ten or more words all is done now" } }
"#;

/// The text in place of the result of a call whose outcome is unknown.
const UNKNOWN: &str = "did not complete (session was interrupted)";

/// Runs at the same time, which wait more than they work.
const AT_ONCE: usize = 4;

/// Where a process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    Never,
    /// Before the write with this number, which never happens.
    Before(usize),
    /// After the write with this number, before anything that follows from it.
    After(usize),
    /// Once the client has read so many events.
    Read(usize),
}

/// Ends all that a process does to the store at one point.
#[derive(Debug)]
struct Killer {
    point: Point,
    begun: AtomicUsize,
    written: AtomicUsize,
    dead: CancellationToken,
}

impl Killer {
    fn at(point: Point) -> Self {
        let (begun, written) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { point, begun, written, dead: CancellationToken::new() }
    }

    async fn reach(&self, point: Point) {
        if self.point == point {
            self.dead.cancel();
        }
        if self.dead.is_cancelled() {
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl Gate for Killer {
    async fn admit(&self, _commit: &Commit) -> Result<(), StoreError> {
        self.reach(Point::Before(self.begun.fetch_add(1, Ordering::SeqCst) + 1)).await;
        Ok(())
    }

    async fn written(&self) {
        self.reach(Point::After(self.written.fetch_add(1, Ordering::SeqCst) + 1)).await;
    }
}

/// A process: its threads, which end with it, and its runs over a store, which does not.
struct Process {
    runtime: Runtime,
    runs: Arc<Runs>,
    store: Arc<Gated<Killer, dyn Store>>,
}

impl Process {
    fn start(storage: &Storage, point: Point, runs: impl FnOnce(Arc<dyn Store>) -> Arc<Runs>) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let inner = runtime.block_on(storage.open());
        let store = Arc::new(Gated { inner, gate: Killer::at(point) });
        let runs = {
            let _entered = runtime.enter();
            runs(store.clone())
        };
        Self { runtime, runs, store }
    }

    /// Does this in the process until it dies. Returns the result, if it came so far, and the number of begun writes.
    fn work<T>(self, work: impl AsyncFnOnce(&Arc<Runs>, &Killer) -> T) -> (Option<T>, usize) {
        let killer = &self.store.gate;
        let done = self.runtime.block_on(async {
            let worked = async {
                tokio::select! {
                    biased;
                    () = killer.dead.cancelled() => None,
                    done = work(&self.runs, killer) => Some(done),
                }
            };
            tokio::time::timeout(PATIENCE, worked).await.expect("the run comes to its end")
        });
        killer.dead.cancel();
        let writes = killer.begun.load(Ordering::SeqCst);
        self.runtime.shutdown_timeout(PATIENCE);
        (done, writes)
    }
}

/// What a client knows. It sends a message again until it has a response, and reads on where it stopped.
struct Client {
    request: Message,
    /// The answer to each question, by the interactions that it decides.
    answers: BTreeMap<String, Message>,
    seen: u64,
    read: usize,
    artifacts: Vec<Artifact>,
}

impl Client {
    fn new() -> Self {
        let (answers, artifacts) = (BTreeMap::new(), Vec::new());
        Self { request: message("go", None), answers, seen: 0, read: 0, artifacts }
    }

    async fn work(&mut self, runs: &Arc<Runs>, killer: &Killer) -> Task {
        let (mut log, _) = runs.send(self.request.clone()).await.unwrap();
        let mut answered = Vec::new();
        loop {
            self.follow(&log, killer).await;
            let task = log.snapshot();
            if task.status.state != TaskState::InputRequired {
                return task;
            }
            let approvals = approvals(&task);
            let approve = || to_task(Some(&task.id), &task.context_id, vec![decisions(&approvals)]);
            let answer = self.answers.entry(approvals.to_string()).or_insert_with(approve);
            assert!(!answered.contains(&approvals), "asked again: {approvals}");
            answered.push(approvals);
            (log, _) = runs.send(answer.clone()).await.unwrap();
        }
    }

    async fn follow(&mut self, log: &Arc<TaskLog>, killer: &Killer) {
        let mut cursor = log.cursor(self.seen);
        while let Some(logged) = cursor.next().await {
            assert!(logged.seq() > self.seen, "{} came after {}", logged.seq(), self.seen);
            self.seen = logged.seq();
            self.take(&logged.event());
            self.read += 1;
            killer.reach(Point::Read(self.read)).await;
        }
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Task(task) => self.artifacts.clone_from(&task.artifacts),
            Event::ArtifactUpdate(update) => {
                let new = &update.artifact;
                match self.artifacts.iter_mut().find(|known| known.artifact_id == new.artifact_id) {
                    Some(known) if update.append => known.append(new),
                    Some(known) => known.clone_from(new),
                    None => self.artifacts.push(new.clone()),
                }
            }
            Event::Message(_) | Event::StatusUpdate(_) => {}
        }
    }
}

/// The approval of each call that the last form of a task asks about.
fn approvals(task: &Task) -> Value {
    let is_form = |artifact: &&Artifact| artifact.name.as_deref() == Some("UserInputMetaData");
    let form = task.artifacts.iter().rfind(is_form).and_then(|form| form.parts[0].as_data()).expect("a form");
    let fields = form["input_fields"].as_array().expect("fields");
    let approve = |field: &Value| json!({"type": "approve", "interaction_id": field["interaction_id"], "digest": field["digest"]});
    fields.iter().map(approve).collect()
}

/// The agent `distant`, which a dead process does not take with it: the next process has its store and its address.
struct Distant {
    script: &'static str,
    url: String,
    listener: StdListener,
    storage: Storage,
}

impl Distant {
    fn new(script: &'static str, storage: Storage) -> Self {
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        Self { script, url, listener, storage }
    }

    /// Serves until `stop`; the first process dies at the point. Returns its number of writes.
    fn serve(&self, point: Point, tools: &Tools, stop: &CancellationToken) -> usize {
        let mut point = point;
        let mut of_first = None;
        while !stop.is_cancelled() {
            let runs = |store| {
                let setup = TestSetup { script: self.script, ..setup(tools, true) };
                let agent = setup.worker("distant");
                runs_of(agent, Presentation::sub_agent("distant", &BTreeMap::new()), store)
            };
            let process = Process::start(&self.storage, point, runs);
            let (_, writes) = process.work(async |runs, _| {
                runs.recover().await.unwrap();
                let listener = TcpListener::from_std(self.listener.try_clone().unwrap()).unwrap();
                let card = CardBuilder::new("Distant", "Fetches.", &self.url, "1");
                let card = card.extension(ACTIVITY_EXTENSION, "activity").build();
                let api = TaskApi::new(runs.clone(), [card.clone(), card], None);
                let serving = axum::serve(listener, router(Arc::new(api), ServerOptions::default()));
                tokio::select! {
                    served = async { serving.await } => served.unwrap(),
                    () = stop.cancelled() => {}
                }
            });
            of_first.get_or_insert(writes);
            point = Point::Never;
        }
        of_first.unwrap_or_default()
    }

    fn backend(&self) -> Arc<dyn AgentBackend> {
        let target = RemoteTarget {
            client_tools: None,
            name: AgentName::new("distant"),
            url: self.url.parse().unwrap(),
            headers: axum::http::HeaderMap::new(),
            silence: Duration::from_secs(20),
            require_approval: Vec::new(),
        };
        RemoteBackend::new(target, http_builder().no_proxy().build().unwrap(), Arc::new(CardCache::default()))
    }
}

fn setup(tools: &Tools, guarded: bool) -> TestSetup {
    let require_approval = if guarded { vec!["echo".to_owned()] } else { Vec::new() };
    TestSetup { script: SCRIPT, servers: vec![tools.spec()], require_approval, ..TestSetup::default() }
}

fn supervisor(tools: &Tools, distant: &Distant, store: Arc<dyn Store>) -> Arc<Runs> {
    let in_process = |guarded, name| -> Arc<dyn AgentBackend> {
        Arc::new(InProcessBackend(setup(tools, guarded).worker(name)))
    };
    let agents = [
        ("reader", in_process(false, "reader")),
        ("writer", in_process(true, "writer")),
        ("distant", distant.backend()),
    ];
    let agent = setup(tools, false).supervisor_of(agents);
    runs_of(agent, Presentation::Supervisor { tool_output: None }, store)
}

/// What a run came to.
#[derive(Debug)]
struct Outcome {
    /// Where supervisor and agent died.
    death: (Point, Point),
    state: TaskState,
    answer: String,
    /// The content and the status of each step.
    plan: Vec<(Value, Value)>,
    /// How often the tool server received the calls of `reader`, of `writer`, and the two of `distant`.
    calls: [usize; 4],
    /// The writes of the first processes of supervisor and agent, and the events that the client read.
    writes: usize,
    distant_writes: usize,
    read: usize,
}

/// A run whose supervisor dies at one point and whose agent dies at another, once each.
fn run(servers: &Runtime, new_storage: &(dyn Fn() -> Storage + Sync), death: (Point, Point)) -> Outcome {
    let (of_supervisor, of_distant) = death;
    let tools = servers.block_on(Tools::start());
    let (distant, storage, stop) =
        (Distant::new(SCRIPT, new_storage()), new_storage(), CancellationToken::new());
    let mut client = Client::new();
    let (task, writes, distant_writes) = std::thread::scope(|threads| {
        let serving = threads.spawn(|| distant.serve(of_distant, &tools, &stop));
        // Also if this thread panics.
        let _stop = stop.clone().drop_guard();
        let mut point = of_supervisor;
        let mut first = None;
        let task = loop {
            let process = Process::start(&storage, point, |store| supervisor(&tools, &distant, store));
            let (done, writes) = process.work(async |runs, killer| {
                runs.recover().await.unwrap();
                client.work(runs, killer).await
            });
            first.get_or_insert(writes);
            point = Point::Never;
            if let Some(task) = done {
                break task;
            }
        };
        stop.cancel();
        (task, first.unwrap_or_default(), serving.join().unwrap())
    });
    assert_eq!(client.artifacts, task.artifacts, "the client has what the task has");
    let of = |name: &str| task.artifacts.iter().rfind(|artifact| artifact.name.as_deref() == Some(name));
    let answer = of("final_result").map(Artifact::text).unwrap_or_default();
    let is_plan = |artifact: &&Artifact| {
        artifact.name.as_deref().is_some_and(|name| name.starts_with("execution_plan"))
    };
    let plan = task.artifacts.iter().rfind(is_plan).and_then(|plan| plan.parts.last()?.as_data().cloned());
    let shown = |step: &Value| (step["title"].clone(), step["status"].clone());
    let plan = plan.unwrap_or_default()["steps"].as_array().into_iter().flatten().map(shown).collect();
    let made = tools.calls();
    let count = |argument: &str, value: Value| made.iter().filter(|call| call[argument] == value).count();
    let texts = |text: &str| count("text", json!(text));
    let calls = [count("a", json!(1)), texts("danger"), count("a", json!(3)), texts("far")];
    Outcome {
        death,
        state: task.status.state,
        answer,
        plan,
        calls,
        writes,
        distant_writes,
        read: client.read,
    }
}

impl Outcome {
    /// Every point of this run at which a process can die: one of them, and for each write of the agent both.
    fn deaths(&self) -> Vec<(Point, Point)> {
        let never = Point::Never;
        let at_write = |number| [Point::Before(number), Point::After(number)];
        let of_supervisor = (1..=self.writes).flat_map(at_write).chain((1..=self.read).map(Point::Read));
        let of_agent = (1..=self.distant_writes).flat_map(at_write);
        let both = (1..=self.distant_writes)
            .map(|number| (Point::Before(number * self.writes / self.distant_writes), Point::After(number)));
        let of_supervisor = of_supervisor.map(|point| (point, never));
        of_supervisor.chain(of_agent.map(|point| (never, point))).chain(both).collect()
    }

    /// Whether it is what the undisturbed run came to, but for calls whose outcome is unknown.
    fn check(&self, undisturbed: &Self) {
        assert_eq!(self.state, TaskState::Completed, "after {:?}: {self:?}", self.death);
        assert_eq!(self.plan, undisturbed.plan, "{self:?}");
        let parts = |outcome: &Self| outcome.answer.split(" / ").map(str::to_owned).collect::<Vec<_>>();
        let (mine, theirs) = (parts(self), parts(undisturbed));
        assert_eq!(mine.len(), theirs.len(), "{self:?}");
        for (mine, theirs) in mine.iter().zip(&theirs) {
            assert!(mine == theirs || mine.contains(UNKNOWN), "{mine} is not {theirs}: {self:?}");
        }
        let words = ["read", "wrote", "fetched", "fetched"];
        for (calls, word) in self.calls.into_iter().zip(words) {
            let is_unknown = mine.iter().any(|part| part.starts_with(word) && part.contains(UNKNOWN));
            assert!(calls == 1 || (calls == 0 && is_unknown), "{calls} calls, {word}: {self:?}");
        }
    }
}

/// The rich run on new storages: undisturbed, then with a kill at every `step`th point.
fn kill_everywhere(name: &str, new_storage: &(dyn Fn() -> Storage + Sync), step: usize) {
    let servers = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let undisturbed = run(&servers, new_storage, (Point::Never, Point::Never));
    println!("{undisturbed:?}");
    undisturbed.check(&undisturbed);
    assert_eq!(undisturbed.calls, [1, 1, 1, 1]);
    let deaths: Vec<_> = undisturbed.deaths().into_iter().step_by(step).collect();
    let unknown = AtomicUsize::new(0);
    let next = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                while let Some(&death) = deaths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = run(&servers, new_storage, death);
                    outcome.check(&undisturbed);
                    unknown.fetch_add(usize::from(outcome.answer.contains(UNKNOWN)), Ordering::Relaxed);
                }
            });
        }
    });
    let (kills, unknown) = (deaths.len(), unknown.into_inner());
    println!(
        "{name}: {kills} runs with a kill, 0 differences, {unknown} times the outcome of a call was unknown"
    );
}

/// The same on the storages of a server.
fn kill_on(server: &StorageServer, is_encrypted: bool, step: usize) {
    let name = format!("{server}{}", if is_encrypted { ", encrypted" } else { "" });
    kill_everywhere(&name, &|| server.storage(is_encrypted), step);
}

#[test]
fn a_rich_run_survives_the_death_of_its_processes_anywhere() {
    kill_on(&StorageServer::Memory, false, 1);
}

/// Every so many points of the run in a test that is part of each build; the campaign has them all.
const SAMPLE: usize = 17;

#[test]
fn a_rich_run_on_redis_survives_the_death_of_its_processes() {
    kill_on(&StorageServer::Redis(RedisServer::start(&[]).unwrap()), true, SAMPLE);
}

#[test]
#[ignore = "it takes minutes; `make campaign` runs it"]
fn campaign_a_rich_run_on_redis_survives_the_death_of_its_processes_anywhere() {
    let server = StorageServer::Redis(RedisServer::start(&[]).unwrap());
    kill_on(&server, false, 1);
    kill_on(&server, true, 1);
}

#[cfg(feature = "mongodb")]
#[test]
#[ignore = "it takes minutes; `make campaign` runs it"]
fn campaign_a_rich_run_on_mongodb_survives_the_death_of_its_processes() {
    kill_on(&StorageServer::Mongodb, false, 5);
}

/// Its agent works for long.
const LONG: &str = r#"
turns:
  - { when: { agent: distant, turn: 0 }, reply: { calls: [{ name: add, arguments: { a: 3, b: 4 } }] } }
  - { when: { agent: distant }, reply: { delay_ms: 60000, text: "one two three" } }
  - { reply: { calls: [{ name: task, arguments: { subagent_type: distant, description: fetch } }] } }
"#;

/// What became of a task of the agent.
async fn end_of(store: &Arc<dyn Store>, task: &str) -> TaskPhase {
    let mut follower = Follower::new(store.clone(), task, 0);
    let ended = async { while follower.next().await.unwrap().is_some() {} };
    tokio::time::timeout(PATIENCE, ended).await.expect("the agent's task is canceled");
    store.task(task).await.unwrap().unwrap().phase
}

/// Cancels a run while its agent works, and dies at the point; the next process is asked `at_once`, as it continues the run, or once
/// the agent works. Returns the number of writes of the first process.
fn cancel(servers: &Runtime, server: &StorageServer, death: Point, at_once: bool) -> usize {
    let tools = servers.block_on(Tools::start());
    let (distant, storage, stop) =
        (Distant::new(LONG, server.storage(false)), server.storage(false), CancellationToken::new());
    let request = message("go", None);
    std::thread::scope(|threads| {
        let serving = threads.spawn(|| distant.serve(Point::Never, &tools, &stop));
        let _stop = stop.clone().drop_guard();
        let mut point = death;
        let mut first = None;
        let state = loop {
            let setup = TestSetup { script: LONG, ..TestSetup::default() };
            let process = Process::start(&storage, point, |store| {
                let agent = setup.supervisor_of([("distant", distant.backend())]);
                runs_of(agent, Presentation::Supervisor { tool_output: None }, store)
            });
            let (done, writes) = process.work(async |runs, _| {
                runs.recover().await.unwrap();
                let (log, _) = runs.send(request.clone()).await.unwrap();
                if !log.state().is_terminal() && at_once && point != death {
                    runs.cancel(&log.task_id()).await.unwrap();
                } else if !log.state().is_terminal() {
                    let mut cursor = log.cursor(0);
                    let is_at_work = |event: &Event| format!("{event:?}").contains("Distant: Calling tool");
                    while !is_at_work(&cursor.next().await.expect("the agent works").event()) {}
                    runs.cancel(&log.task_id()).await.unwrap();
                }
                let (store, of_agent) = (storage.open().await, distant.storage.open().await);
                let tasks = of_agent.tasks(&TaskFilter::default()).await.unwrap();
                for task in &tasks {
                    assert_eq!(end_of(&of_agent, &task.id).await, TaskPhase::Canceled, "after {death:?}");
                }
                while !store.outbox().await.unwrap().is_empty() {
                    tokio::task::yield_now().await;
                }
                (log.state(), tasks.len())
            });
            first.get_or_insert(writes);
            point = Point::Never;
            if let Some(state) = done {
                break state;
            }
        };
        stop.cancel();
        let (state, tasks) = state;
        assert_eq!(state, TaskState::Canceled, "after {death:?}");
        assert!(tasks == 1 || (tasks == 0 && at_once), "{tasks} tasks after {death:?}");
        serving.join().unwrap();
        first.unwrap_or_default()
    })
}

/// Cancels and dies before and after each write.
fn cancel_everywhere(server: &StorageServer) {
    let servers = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let writes = cancel(&servers, server, Point::Never, false);
    for number in 1..=writes {
        for death in [Point::Before(number), Point::After(number)] {
            cancel(&servers, server, death, false);
            cancel(&servers, server, death, true);
        }
    }
    println!("{server}: {} canceled runs with a kill", 4 * writes);
}

/// Also if the process dies between the commit of the cancellation and the request to the agent.
#[test]
fn a_canceled_run_leaves_no_agent_at_work() {
    cancel_everywhere(&StorageServer::Memory);
}

#[test]
#[ignore = "it takes minutes; `make campaign` runs it"]
fn campaign_a_canceled_run_on_redis_leaves_no_agent_at_work() {
    cancel_everywhere(&StorageServer::Redis(RedisServer::start(&[]).unwrap()));
}
