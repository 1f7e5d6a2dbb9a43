//! The bot under load: how much it uses, how often it calls Slack, and how soon it shows a token.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use axum::extract::State;
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use axum::{Json, Router};
use caipe_fixtures::slack::{ApiCall, Failure, FakeSlack, Options};
use caipe_tests::process::{allow_files, processor_time, resident_kib};
use caipe_tests::supervisor::Setup;
use futures::Stream;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The time between two tokens of an answer: of one thread, and of 500, which the test shares its processors with.
const OFTEN: Duration = Duration::from_millis(100);
const SELDOM: Duration = Duration::from_secs(2);
/// The longest wait for the end of all answers.
const LIMIT: Duration = Duration::from_mins(10);

/// An agent whose tokens are the times at which it sends them, in microseconds.
struct Clock {
    url: String,
    requests: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

#[derive(Clone)]
struct Answers {
    card: Value,
    tokens: usize,
    pause: Duration,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Clock {
    async fn start(tokens: usize, pause: Duration) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let card = json!({
            "name": "clock", "description": "Says the time.", "version": "1", "url": url, "protocolVersion": "0.3.0",
            "preferredTransport": "JSONRPC", "capabilities": {"streaming": true},
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [],
        });
        let requests = Arc::<Mutex<Vec<Value>>>::default();
        let state = Answers { card, tokens, pause, requests: Arc::clone(&requests) };
        let routes = Router::new()
            .route(
                "/.well-known/agent-card.json",
                get(async |State(answers): State<Answers>| Json(answers.card)),
            )
            .route("/", post(answer))
            .with_state(state);
        let task = tokio::spawn(async move { drop(axum::serve(listener, routes).await) });
        Ok(Self { url, requests, task })
    }

    fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State(answers): State<Answers>,
    Json(request): Json<Value>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let message = &request["params"]["message"];
    let task = format!("task-{}", message["messageId"].as_str().unwrap_or_default());
    let id = request["id"].clone();
    answers.requests.lock().unwrap_or_else(PoisonError::into_inner).push(message.clone());
    let events = futures::stream::unfold(0, move |number| {
        let (task, id) = (task.clone(), id.clone());
        async move {
            if number > answers.tokens + 1 {
                return None;
            }
            let result = if number == 0 {
                json!({"kind": "task", "id": task, "contextId": task, "status": {"state": "working"}})
            } else if number > answers.tokens {
                json!({"kind": "status-update", "taskId": task, "contextId": task, "final": true, "status": {"state": "completed"}})
            } else {
                tokio::time::sleep(answers.pause).await;
                let part = json!({"kind": "text", "text": format!("{} ", micros(SystemTime::now()))});
                json!({"kind": "artifact-update", "taskId": task, "contextId": task, "append": number > 1,
                    "artifact": {"artifactId": "answer", "name": "streaming_result", "parts": [part]}})
            };
            let event = Event::default().json_data(json!({"jsonrpc": "2.0", "id": id, "result": result}));
            Some((Ok(event.unwrap_or_default()), number + 1))
        }
    });
    Sse::new(events)
}

fn micros(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros()
}

/// The tokens in the text of a call.
fn tokens(call: &ApiCall) -> Vec<u128> {
    let of = |name: &str| call.body[name].as_array().cloned().unwrap_or_default();
    let parts: Vec<Value> = of("chunks").into_iter().chain(of("blocks")).collect();
    let texts = parts.iter().filter_map(|part| part["text"].as_str());
    texts.flat_map(str::split_whitespace).filter_map(|word| word.parse().ok()).collect()
}

/// The times between a token and the call that shows it first, sorted.
fn delays(calls: &[ApiCall]) -> Vec<Duration> {
    let mut seen = HashSet::new();
    let mut delays = Vec::new();
    for call in calls.iter().filter(|call| call.error.is_empty()) {
        let now = micros(call.at);
        let new = tokens(call)
            .into_iter()
            .filter(|token| seen.insert((call.body["thread_ts"].clone().to_string(), *token)));
        delays.extend(new.map(|token| {
            Duration::from_micros(u64::try_from(now.saturating_sub(token)).unwrap_or(u64::MAX))
        }));
    }
    delays.sort_unstable();
    delays
}

/// What a load has taken.
struct Figures {
    threads: usize,
    peak_kib: u64,
    processor: Duration,
    elapsed: Duration,
    calls: Vec<ApiCall>,
}

impl Figures {
    fn delay(&self, of_hundred: usize) -> Duration {
        let delays = delays(&self.calls);
        delays
            .get((delays.len() * of_hundred / 100).min(delays.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    }

    fn limited(&self) -> usize {
        self.calls.iter().filter(|call| call.error == "ratelimited").count()
    }

    fn print(&self, name: &str) {
        let mut methods = HashMap::<&str, usize>::new();
        for call in &self.calls {
            *methods.entry(call.method.as_str()).or_default() += 1;
        }
        let mut methods: Vec<_> = methods.into_iter().collect();
        methods.sort_unstable();
        let chats = self.calls.iter().filter(|call| call.method.starts_with("chat.")).count();
        let tenths = chats * 10 / self.threads;
        println!(
            "{name}: {} threads, {:.1} s; peak {} MiB, processor {:.1} s; {}.{} chat calls per answer, {} limited; token to call p50 {} ms, p99 {} ms, most {} ms; {methods:?}",
            self.threads,
            self.elapsed.as_secs_f64(),
            self.peak_kib / 1024,
            self.processor.as_secs_f64(),
            tenths / 10,
            tenths % 10,
            self.limited(),
            self.delay(50).as_millis(),
            self.delay(99).as_millis(),
            self.delay(100).as_millis(),
        );
    }
}

/// Asks in many threads at once, and waits for all answers.
async fn load(threads: usize, tokens: usize, pause: Duration, options: Options) -> Result<Figures> {
    allow_files(8_192);
    let setup = Setup::new()?;
    let clock = Clock::start(tokens, pause).await?;
    let slack = FakeSlack::start(options).await?;
    let bot = super::bot(&setup, &clock.url, &slack, "")?;
    let pid = bot.id().context("the bot has ended")?;
    let begun = std::time::Instant::now();
    let asked: Vec<String> =
        (0..threads).map(|user| slack.mention("C1", &format!("U{user:04}"), "time", None)).collect();
    let mut peak_kib = 0;
    let deadline = begun + LIMIT;
    loop {
        peak_kib = resident_kib(pid)?.max(peak_kib);
        let has_answer = |thread: &String| {
            let own = super::own(&slack, "C1", thread);
            own.iter().all(|message| !message.streaming)
                && own.iter().any(|message| message.block_text().contains("feedback_buttons"))
        };
        if asked.iter().all(has_answer) {
            break;
        }
        ensure!(std::time::Instant::now() < deadline, "not all threads have an answer");
        slack.until(Duration::from_millis(500), |_| false).await;
    }
    let figures = Figures {
        threads,
        peak_kib,
        processor: processor_time(pid)?,
        elapsed: begun.elapsed(),
        calls: slack.calls(),
    };
    for thread in &asked {
        let own = super::own(&slack, "C1", thread);
        let words = super::text(&own).split_whitespace().count();
        ensure!(words == tokens, "a thread shows {words} tokens: {own:#?}");
    }
    let people: HashSet<String> = clock
        .requests()
        .iter()
        .filter_map(|message| message["metadata"]["user_email"].as_str().map(str::to_owned))
        .collect();
    ensure!(people.len() == threads, "{} of {threads} people are named to the agent", people.len());
    Ok(figures)
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_shown_while_they_arrive() -> Result<()> {
    let figures = load(1, 50, OFTEN, Options::default()).await?;
    figures.print("one thread");
    let appends = figures.calls.iter().filter(|call| call.method == "chat.appendStream").count();
    ensure!(appends >= 3, "the answer was shown in {appends} pieces");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_does_not_lose_the_person_who_asks() -> Result<()> {
    let setup = Setup::new()?;
    let clock = Clock::start(1, OFTEN).await?;
    let slack = FakeSlack::start(Options::default()).await?;
    slack.fail("users.info", Failure::RateLimit(1));
    let _bot = super::bot(&setup, &clock.url, &slack, "")?;
    slack.mention("C1", "UANN", "time", None);
    ensure!(slack.until(super::LIMIT, |_| !clock.requests().is_empty()).await, "the agent is not asked");
    assert_eq!(clock.requests()[0]["metadata"]["user_email"], "uann@example.com");
    Ok(())
}

/// `make campaign` prints the figures of docs/slack.md.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn load_campaign() -> Result<()> {
    load(1, 300, OFTEN, Options::default()).await?.print("one thread");
    load(500, 10, SELDOM, Options::default()).await?.print("500 threads without limits of Slack");
    let figures =
        load(500, 10, SELDOM, Options { calls_per_minute: Some(600), ..Options::default() }).await?;
    figures.print("500 threads, 600 calls of each method a minute");
    ensure!(figures.limited() * 4 < figures.calls.len(), "a storm: {} calls are limited", figures.limited());
    Ok(())
}
