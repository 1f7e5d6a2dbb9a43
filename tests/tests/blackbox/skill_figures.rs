//! What a large catalogue of skills costs.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use caipe_tests::process::resident_kib;
use caipe_tests::scenario::{Scenario, answer};
use caipe_tests::supervisor::Supervisor;
use serde_json::{Value, json};

const SKILLS: usize = 10_000;
const REQUESTS: usize = 1000;
/// The size of the instructions of a skill.
const BYTES: usize = 2000;

fn write(folder: &Path, number: usize, step: &str) -> Result<()> {
    let folder = folder.join(format!("skill-{number}"));
    std::fs::create_dir_all(&folder)?;
    let description =
        format!("Restarts service {number} of the platform and checks its metrics, logs and alerts.");
    let text = format!(
        "---\nname: skill-{number}\ndescription: {description}\n---\n{}",
        step.repeat(BYTES / step.len())
    );
    Ok(std::fs::write(folder.join("SKILL.md"), text)?)
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

/// The figures of docs/skills.md are those of a release build.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is a measurement; `make campaign` runs it"]
async fn ten_thousand_skills_campaign() -> Result<()> {
    let source = json!({"name": "team", "path": "skills"});
    let scenario = Scenario::new()
        .set("agents", json!([]))
        .set("skills", json!({"sources": [source]}))
        .turn(json!({"user": "*"}), answer("Done."));
    let mut memory = Vec::new();
    for count in [0, SKILLS] {
        let setup = scenario.setup()?;
        let folder = setup.dir().join("skills");
        std::fs::create_dir_all(&folder)?;
        (0..count).try_for_each(|number| write(&folder, number, "Look at the metrics.\n"))?;
        let directory = setup.dir().to_owned();
        let setup = setup.in_directory(&directory);
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
        (0..count).try_for_each(|number| write(&folder, number, "Look at the logs.\n"))?;
        println!("refresh with all changed: {:?}", refresh(&supervisor).await?);
        memory.push(resident_kib(pid)? / 1024);
    }
    println!("MiB without skills, with them, after the requests, and after the refresh: {memory:?}");
    Ok(())
}
