//! A server that is killed in the middle of a stream, again and again: every client has the whole answer in the end, and no id
//! means two events.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use caipe_tests::random::{SeededRandom, seed};
use caipe_tests::resumable_stream::{Connection, Version};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::Supervisor;
use serde_json::{Value, json};

/// How often the server is killed.
const KILLS: usize = 102;

/// Kills of the same task; then it may come to its end. After one more, the task would fail.
const KILLS_PER_TASK: usize = 3;

/// Words of the answer, each a piece of its own.
const WORDS: usize = 150;

/// What a client that reads little reads before it is cut off.
pub(super) const LITTLE: usize = 4;

/// One answer, a word every three milliseconds.
pub(super) fn scenario() -> Scenario {
    let words: Vec<String> = (0..WORDS).map(|word| format!("wörd-{word}")).collect();
    let reply = json!({"text": words.join(" "), "delay_ms": 3});
    Scenario::new().turn(json!({}), reply).set("prompts", json!({"answerMode": "Marker"}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_kills_cost_no_client_an_answer() -> Result<()> {
    let seed = seed("CAIPE_KILL_SEED");
    println!("CAIPE_KILL_SEED={seed} kills the server at the same events again");
    let mut chance = SeededRandom(seed);
    let setup = scenario().setup()?;
    let mut supervisor = setup.start_unready().await?;
    let mut broken_off = 0;
    for _ in 0..KILLS / KILLS_PER_TASK {
        let mut clients = begin(&supervisor).await?;
        for _ in 0..KILLS_PER_TASK {
            let fatal = 1 + chance.below(WORDS + WORDS / 2);
            clients = follow_and_kill(supervisor, clients, fatal, chance.below(4000)).await?;
            supervisor = setup.start_unready().await?;
        }
        let clients = follow(supervisor.url(), clients, &AtomicUsize::new(0), usize::MAX).await?;
        check(&supervisor, &clients).await?;
        // What is stored is all that the next process knows.
        supervisor.kill().await?;
        supervisor = setup.start_unready().await?;
        check(&supervisor, &clients).await?;
        broken_off += clients.iter().map(|client| client.resets).max().unwrap_or_default();
    }
    ensure!(
        broken_off > KILLS / 4,
        "only {broken_off} answers were cut off: the kills come at the wrong time"
    );
    supervisor.kill().await
}

/// Who follows the task: one who reads all that comes and one who reads little, in each version.
pub(super) async fn begin(supervisor: &Supervisor) -> Result<Vec<Client>> {
    let mut first = Connection::ask(supervisor.url(), Version::V1_0, "count").await?;
    let (_, task) = first.next().await.context("the stream began with nothing")?;
    let task = task["task"]["id"].as_str().context("the stream did not begin with the task")?.to_owned();
    let client = |version, appetite| Client { version, appetite, ..Client::new(&task) };
    let of = |version| [client(version, usize::MAX), client(version, LITTLE)];
    Ok([of(Version::V0_3), of(Version::V1_0)].into_iter().flatten().collect())
}

/// Lets all follow the task until they have read `fatal` events in all and a moment more, then kills the server.
async fn follow_and_kill(
    supervisor: Supervisor,
    clients: Vec<Client>,
    fatal: usize,
    moment: usize,
) -> Result<Vec<Client>> {
    let (url, read) = (supervisor.url().to_owned(), AtomicUsize::new(0));
    let following = async {
        let clients = follow(&url, clients, &read, LITTLE).await;
        // The answer may end before that many were read.
        read.fetch_max(fatal, Ordering::Relaxed);
        clients
    };
    let killing = async {
        while read.load(Ordering::Relaxed) < fatal {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_micros(moment as u64)).await;
        supervisor.kill().await
    };
    let (clients, killed) = tokio::join!(following, killing);
    killed.and(clients)
}

/// Each client resumes after its last event until its stream ends. A client with little appetite reads at most
/// `little` events.
pub(super) async fn follow(
    url: &str,
    clients: Vec<Client>,
    read: &AtomicUsize,
    little: usize,
) -> Result<Vec<Client>> {
    let following = clients.into_iter().map(async |mut client| {
        client.follow(url, little, read).await.with_context(|| format!("{client:?}"))?;
        Ok(client)
    });
    futures::future::join_all(following).await.into_iter().collect()
}

/// What a client knows of a task.
#[derive(Debug)]
pub(super) struct Client {
    version: Version,
    pub(super) task: String,
    appetite: usize,
    /// The id of the last event, once there was one.
    last: Option<u64>,
    /// The events by their ids, as they were written.
    events: BTreeMap<u64, String>,
    pub(super) artifacts: Vec<(String, String)>,
    /// How often the text of an interrupted turn was reset.
    pub(super) resets: usize,
    /// The state of the task, in the words of 0.3.
    pub(super) state: String,
}

impl Client {
    pub(super) fn new(task: &str) -> Self {
        let (version, events) = (Version::V0_3, BTreeMap::new());
        Self {
            version,
            task: task.to_owned(),
            appetite: 0,
            last: None,
            events,
            artifacts: Vec::new(),
            resets: 0,
            state: String::new(),
        }
    }

    /// Reads what one connection carries, until it ends or is silent for so long.
    pub(super) async fn read(&mut self, url: &str, silence: Duration) -> Result<()> {
        let opened = Connection::resume(url, self.version, &self.task, Some(self.last.unwrap_or(0)));
        let Ok(Ok(connection)) = tokio::time::timeout(silence, opened).await else { return Ok(()) };
        let mut connection = connection.with_patience(silence);
        let mut is_first = true;
        while let Some((number, event)) = connection.next().await {
            // An error of a replica without its store has no number.
            let Some(number) = number else { return Ok(()) };
            self.take(is_first, number, &event)?;
            is_first = false;
        }
        Ok(())
    }

    async fn follow(&mut self, url: &str, little: usize, read: &AtomicUsize) -> Result<()> {
        // A client without an event starts from the beginning.
        let from = Some(self.last.unwrap_or(0));
        let Ok(mut connection) = Connection::resume(url, self.version, &self.task, from).await else {
            return Ok(());
        };
        let most = self.appetite.max(little);
        let mut count = 0;
        while count < most
            && let Some((number, event)) = connection.next().await
        {
            let number = number.with_context(|| format!("an event without a number: {event}"))?;
            self.take(count == 0, number, &event)?;
            count += 1;
            read.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn take(&mut self, first: bool, number: u64, event: &Value) -> Result<()> {
        let before = self.last;
        if let Some(state) = event["status"]["state"].as_str() {
            state.clone_into(&mut self.state);
        }
        if first {
            let known = artifacts(self.version.task(event).context("a stream begins with the task")?);
            // A crash can have lost pieces that this client has.
            ensure!(before.is_none_or(|before| number <= before), "{before:?} was gone on with at {number}");
            ensure!(
                before != Some(number) || known == self.artifacts,
                "the task is another than at {number}: {known:?}"
            );
            self.artifacts = known;
            // The stream continues there, also if this client has seen more at another replica.
            self.last = Some(number);
        } else {
            ensure!(before.is_some_and(|before| before < number), "{number} came after {before:?}");
            self.last = Some(number);
            if let Some(update) = self.version.artifact_update(event) {
                self.apply(update);
            }
            // `final` says whether the stream ends here, which changes when a question is answered.
            let event = event.to_string().replace(r#""final":true"#, r#""final":false"#);
            let known = self.events.insert(number, event.clone());
            ensure!(known.is_none_or(|known| known == event), "{number} is another event: {event}");
        }
        Ok(())
    }

    fn apply(&mut self, update: &Value) {
        let (id, text) = text_of(&update["artifact"]);
        let append = update["append"] == true;
        match self.artifacts.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) if append => known.push_str(&text),
            Some((_, known)) => {
                self.resets += 1;
                *known = text;
            }
            None => self.artifacts.push((id, text)),
        }
    }
}

pub(super) fn artifacts(task: &Value) -> Vec<(String, String)> {
    task["artifacts"].as_array().into_iter().flatten().map(text_of).collect()
}

fn text_of(artifact: &Value) -> (String, String) {
    let texts = artifact["parts"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    (artifact["artifactId"].as_str().unwrap_or_default().to_owned(), texts.collect())
}

/// What every client has put together is what the task is, and what its log tells from the start.
pub(super) async fn check(supervisor: &Supervisor, clients: &[Client]) -> Result<()> {
    for client in clients {
        let task = supervisor.call("tasks/get", json!({"id": client.task})).await?;
        let task = &task["result"];
        ensure!(task["status"]["state"] == "completed", "the task is {}", task["status"]);
        ensure!(artifacts(task) == client.artifacts, "{client:?} is not {task}");
        let whole: Vec<_> = (0..WORDS).map(|word| format!("wörd-{word}")).collect();
        for (_, text) in &client.artifacts {
            ensure!(*text == whole.join(" "), "the answer is not whole: {task}");
        }
        ensure!(client.artifacts.len() == 2, "the text and the result, once each: {task}");

        let mut log = Client { version: client.version, appetite: usize::MAX, ..Client::new(&client.task) };
        log.follow(supervisor.url(), 0, &AtomicUsize::new(0)).await?;
        ensure!(log.artifacts == client.artifacts, "the log tells {log:?}, not {client:?}");
        ensure!(
            // Pieces that a crash has lost are not there, but their ids are not those of others.
            client.events.iter().all(|(id, event)| log.events.get(id).is_none_or(|stored| stored == event)),
            "the log tells other events, {:?}, than {client:?}",
            log.events
        );
    }
    Ok(())
}
