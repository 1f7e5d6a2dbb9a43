//! The commands of `docs/clients.md`, run as they are, but at the address of the supervisor under test.

use anyhow::{Context, Result, ensure};
use caipe_tests::programs;
use caipe_tests::supervisor::Supervisor;
use serde_json::json;
use tokio::process::Command;

use crate::echo;

/// The supervisor's address on the page.
const ADDRESS: &str = "http://127.0.0.1:8000";

/// A block of commands, and parts of what it prints, in order.
#[derive(Debug)]
struct Example {
    commands: String,
    prints: Vec<String>,
}

fn examples() -> Result<Vec<Example>> {
    let page = std::fs::read_to_string(programs::workspace().join("docs/clients.md"))?;
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let example = |block: &str| {
        let prints: Vec<String> =
            block.lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect();
        ensure!(!prints.is_empty(), "the page does not say what this prints: {block}");
        Ok(Example { commands: block.to_owned(), prints })
    };
    blocks.map(example).collect()
}

async fn output(example: &Example, supervisor: &Supervisor, task: &str) -> Result<String> {
    let command = example.commands.replace(ADDRESS, supervisor.url());
    let mut shell = Command::new("bash");
    let shell = shell.args(["-euc", &command]).env("TASK", task).env("NO_PROXY", "*").kill_on_drop(true);
    let output = shell.output().await.context("failed to run bash")?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{command}: {:?}: {text}", output.status);
    Ok(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_page_about_clients_prints_what_the_page_says() -> Result<()> {
    let endless = json!({"repeat": {"token": "tick ", "times": 1_000_000}, "delay_ms": 5});
    let mut scenario = echo(&["jira"])?
        .asks("comment", &["jira"])
        .answers("what changed?", "Nothing.")
        .turn(json!({"user": "count"}), endless);
    scenario.change_agent("jira", "requireApproval", json!(["ec*"]));
    let supervisor = scenario.setup()?.start().await?;
    let mut running = supervisor.stream("count", None).await?;
    let events = running.read_until(|event| event["kind"] == "artifact-update").await?;
    let task = events[0]["id"].as_str().context("the first event is no task")?;

    let examples = examples()?;
    ensure!(examples.len() >= 5, "{examples:?}");
    for example in &examples {
        let printed = output(example, &supervisor, task).await?;
        let mut rest = printed.as_str();
        for part in &example.prints {
            let at =
                rest.find(part).with_context(|| format!("no {part} in what {example:?} printed: {rest}"))?;
            rest = rest.get(at + part.len()..).unwrap_or_default();
        }
    }
    Ok(())
}
