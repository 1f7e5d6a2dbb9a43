//! What a large catalogue of skills costs.

use std::collections::BTreeSet;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use caipe_tests::process::resident_kib;
use caipe_tests::programs::workspace;
use caipe_tests::random::SeededRandom;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor};
use futures::FutureExt as _;
use serde_json::{Value, json};

const SKILLS: usize = 10_000;
const REQUESTS: usize = 1000;
/// The size of a skill.
const BYTES: usize = 2000;

/// Writes a skill whose instructions are lines of the skills of the program, in an order that depends on the seed.
fn write(folder: &Path, lines: &[String], number: usize, seed: u64) -> Result<()> {
    let folder = folder.join(format!("skill-{number}"));
    std::fs::create_dir_all(&folder)?;
    let mut text = format!(
        "---\nname: skill-{number}\ndescription: Restarts service {number} of the platform and checks its metrics, logs and alerts.\n---\n"
    );
    let mut chance = SeededRandom(seed + number as u64);
    while text.len() < BYTES {
        text.extend([&lines[chance.below(lines.len())], "\n"]);
    }
    Ok(std::fs::write(folder.join("SKILL.md"), text)?)
}

/// The different lines of the skills of the program.
fn prose() -> Result<Vec<String>> {
    let mut lines = BTreeSet::new();
    for entry in std::fs::read_dir(workspace().join("supervisor/skills/skills"))? {
        let text = std::fs::read_to_string(entry?.path().join("SKILL.md"))?;
        lines.extend(text.lines().filter(|line| line.len() > 20).map(str::to_owned));
    }
    Ok(lines.into_iter().collect())
}

/// The times of GET requests, the shortest first.
async fn times(supervisor: &Supervisor, path: &dyn Fn(usize) -> String) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(REQUESTS);
    for number in 0..REQUESTS {
        let begin = Instant::now();
        let (status, _) = supervisor.get(&path(number)).await?;
        times.push(begin.elapsed());
        ensure!(status == 200, "{status}");
    }
    times.sort_unstable();
    Ok(times)
}

async fn refresh(supervisor: &Supervisor) -> Result<Duration> {
    let url = format!("{}/skills/refresh", supervisor.url().trim_end_matches('/'));
    let begin = Instant::now();
    reqwest::Client::new().post(url).send().await?.error_for_status()?;
    Ok(begin.elapsed())
}

/// The longest time between two tokens of an answer while a task runs, and the number of tokens.
async fn tokens_beside<T>(
    supervisor: &Supervisor,
    task: impl Future<Output = Result<T>>,
) -> Result<(Duration, usize, T)> {
    let is_token = |event: &Value| event["artifact"]["name"] == "streaming_result";
    let mut stream = supervisor.stream("count", None).await?;
    let before = stream.read_until(is_token).await?;
    let mut task = pin!(task);
    let (mut longest, mut count, mut last) = (Duration::ZERO, 0, Instant::now());
    loop {
        tokio::select! {
            done = &mut task => {
                longest = longest.max(last.elapsed());
                let id = before.last().map(|event| &event["taskId"]);
                supervisor.call("tasks/cancel", json!({"id": id})).await?;
                return Ok((longest, count, done?));
            }
            event = stream.next_event() => {
                let event = event?.context("the answer ended before the task")?;
                if is_token(&event) {
                    longest = longest.max(last.elapsed());
                    (count, last) = (count + 1, Instant::now());
                }
            }
        }
    }
}

/// A supervisor with one thread for requests, which streams a long answer to any question, and has a directory of skills.
fn streaming() -> Result<Setup> {
    let text = "token ".repeat(100_000);
    let setup = Scenario::new()
        .set("agents", json!([]))
        .set("skills", json!({"sources": [{"name": "team", "path": "skills"}]}))
        .turn(json!({"user": "*"}), json!({"text": text, "delay_ms": 2}))
        .setup()?;
    std::fs::create_dir_all(setup.dir().join("skills"))?;
    let directory = setup.dir().to_owned();
    Ok(setup.in_directory(&directory).env("TOKIO_WORKER_THREADS", "1"))
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_arrive_while_skills_are_read() -> Result<()> {
    let setup = streaming()?;
    let (folder, lines) = (setup.dir().join("skills"), prose()?);
    let supervisor = setup.start().await?;
    (0..1000).try_for_each(|number| write(&folder, &lines, number, 1))?;
    let (_, count, _) = tokens_beside(&supervisor, refresh(&supervisor)).await?;
    ensure!(count > 10, "{count} tokens");
    Ok(())
}

/// The figures of docs/skills.md are those of a release build.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is a measurement; `make campaign` runs it"]
async fn ten_thousand_skills_campaign() -> Result<()> {
    let lines = prose()?;
    let mut memory = Vec::new();
    for count in [0, SKILLS] {
        let setup = streaming()?;
        let folder = setup.dir().join("skills");
        (0..count).try_for_each(|number| write(&folder, &lines, number, 1))?;
        let begin = Instant::now();
        let supervisor = setup.start().await?;
        println!("{count} skills: ready after {:?}", begin.elapsed());
        let pid = supervisor.pid().context("it has ended")?;
        memory.push(resident_kib(pid)? / 1024);
        if count == 0 {
            continue;
        }
        let (_, listed) = supervisor.get("/skills?page=1").await?;
        ensure!(serde_json::from_str::<Value>(&listed)?["meta"]["total"] == count + 10, "{listed}");
        let page = |number| format!("/skills?page={}&page_size=50", number % 200 + 1);
        let search = |number| format!("/skills?q=service+{number}+of&page=1");
        let skill = |number| format!("/skills/skill-{}", number * 10);
        let all = |_| "/skills".to_owned();
        let kinds: [(&str, &dyn Fn(usize) -> String); 4] =
            [("a page of 50", &page), ("a search", &search), ("a skill", &skill), ("all skills", &all)];
        for (name, path) in kinds {
            let times = times(&supervisor, path).await?;
            let (p50, p99) = (times[REQUESTS / 2], times[REQUESTS * 99 / 100]);
            println!("{name}: p50 {p50:?}, p99 {p99:?}");
            ensure!(name == "all skills" || p99 < Duration::from_millis(250), "{name}: {p99:?}");
        }
        memory.push(resident_kib(pid)? / 1024);
        println!("refresh without a change: {:?}", refresh(&supervisor).await?);
        (0..count).try_for_each(|number| write(&folder, &lines, number, 2))?;
        let took = refresh(&supervisor).await?;
        println!("refresh with all changed: {took:?}");
        memory.push(resident_kib(pid)? / 1024);
        let idle = tokio::time::sleep(took).map(Ok);
        let (longest, tokens, ()) = tokens_beside(&supervisor, idle).await?;
        println!("without a refresh: {tokens} tokens, at most {longest:?} between two");
        (0..count).try_for_each(|number| write(&folder, &lines, number, 3))?;
        let (longest, tokens, took) = tokens_beside(&supervisor, refresh(&supervisor)).await?;
        println!("during a refresh of {took:?}: {tokens} tokens, at most {longest:?} between two");
    }
    println!("MiB without skills, with them, after the requests, and after the refresh: {memory:?}");
    Ok(())
}
