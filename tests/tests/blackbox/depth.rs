//! Agents that delegate, each in a process of its own: a question three levels down survives the kill of every process.

use std::path::Path;

use anyhow::{Result, ensure};
use caipe_tests::agent;
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor};
use serde_json::{Value, json};

use crate::approval::decide;

const AGENTS: [&str; 3] = ["first", "second", "third"];

/// A chain of three agents. The tool of the last one writes its text into this file, once a person approves that.
fn chain(notes: &Path) -> Result<Scenario> {
    let server = programs::fixture_mcp()?;
    let mode = ["--mode", "noting", "--state"].map(str::to_owned);
    let arguments: Vec<String> = mode.into_iter().chain([notes.display().to_string()]).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut scenario = Scenario::new()
        .delegating("first", "second", "{{ user }}")
        .delegating("second", "third", "{{ user }}")
        .agent("third", &server, &arguments)
        .agent_calls("third", "note", json!({"text": "{{ user }}"}))
        .asks("remove", &["first"]);
    scenario.change_agent("third", "requireApproval", json!(["note"]));
    Ok(scenario)
}

/// The setup with the addresses of these agents.
fn knowing(setup: Setup, agents: &[(&str, String)]) -> Setup {
    agents.iter().fold(setup, |setup, (name, url)| agent::remote(setup, name, url))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_three_levels_down_survives_the_kill_of_every_process() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let notes = directory.path().join("notes");
    let scenario = chain(&notes)?;
    // From the last one up, because each agent must know the address of the next one.
    let (mut known, mut setups, mut processes) = (Vec::new(), Vec::new(), Vec::new());
    for name in AGENTS.into_iter().rev() {
        let setup = knowing(agent::setup(&scenario, name)?, &known);
        let process = setup.start().await?;
        known.push((name, process.url().to_owned()));
        setups.push(setup.listening_at(process.url().trim_start_matches("http://")));
        processes.push(process);
    }
    let setup = knowing(scenario.setup()?, &known);
    let supervisor = setup.start().await?;
    let asked = supervisor.ask("remove it").await?;
    ensure!(asked.state() == "input-required", "{}", asked.outline());
    let form = form(&asked.events);
    let question = "The agent first asks: The agent second asks: The agent third wants to call note.";
    ensure!(form["response"] == question, "{form}");
    ensure!(!notes.exists(), "the tool ran before it was approved");

    supervisor.kill().await?;
    for process in processes {
        process.kill().await?;
    }
    let mut restarted: Vec<Supervisor> = Vec::new();
    for setup in &setups {
        restarted.push(setup.start().await?);
    }
    let supervisor = setup.start().await?;
    let decision =
        json!({"type": "approve", "interaction_id": form["interaction_id"], "digest": form["digest"]});
    let answered = decide(&supervisor, &asked, decision).await?;
    ensure!(answered.state() == "completed", "{}\n{}", answered.outline(), supervisor.log());
    let written = std::fs::read_to_string(&notes)?;
    ensure!(written.matches("remove it").count() == 1, "{written}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_reaches_the_last_agent() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let notes = directory.path().join("notes");
    let scenario = chain(&notes)?;
    let third = agent::setup(&scenario, "third")?.start().await?;
    let known = [("third", third.url().to_owned())];
    // The two others run in the supervisor, so that it knows of the last one from their states only.
    let supervisor = knowing(scenario.setup()?, &known).start().await?;
    let asked = supervisor.ask("remove it").await?;
    ensure!(asked.state() == "input-required", "{}", asked.outline());
    let before = states(&third).await?;
    ensure!(before.contains("TASK_STATE_INPUT_REQUIRED"), "{before}");
    supervisor.call("tasks/cancel", json!({"id": asked.task()})).await?;
    third
        .until("its task is canceled", async || Ok(states(&third).await?.contains("TASK_STATE_CANCELED")))
        .await?;
    ensure!(!notes.exists());
    Ok(())
}

/// The tasks of a process, as text.
async fn states(process: &Supervisor) -> Result<String> {
    let list = reqwest::Client::new().get(format!("{}/tasks", process.url())).header("A2A-Version", "1.0");
    Ok(list.send().await?.text().await?)
}

fn form(events: &[Value]) -> Value {
    let forms = events.iter().rev().find(|event| event["artifact"]["name"] == "UserInputMetaData");
    forms.map(|event| event["artifact"]["parts"][0]["data"].clone()).unwrap_or_default()
}
