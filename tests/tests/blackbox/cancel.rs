//! Stopping a run, and that its agents and tool servers are cancelled too.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::{Answer, TIMEOUT, text_of};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_task_ends_at_the_tool_server_too() -> Result<()> {
    let server = programs::fixture_mcp()?;
    let report = tempfile::NamedTempFile::new()?;
    let path = report.path().to_string_lossy().into_owned();
    let scenario = Scenario::new()
        .agent("jira", &server, &["--mode", "hang-in-call", "--state", &path])
        .agent_calls("jira", "hang", json!({}))
        .asks("hang", &["jira"])
        .answers("*", "Still here.");
    let supervisor = scenario.setup()?.start().await?;

    let mut stream = supervisor.stream("hang", None).await?;
    let mut events = stream.read_until(|event| text_of(event).contains("Jira: Calling tool: Hang")).await?;
    let task = events[0]["id"].as_str().context("no task")?.to_owned();
    let context = events[0]["contextId"].as_str().context("no context")?.to_owned();
    let canceled = supervisor.call("tasks/cancel", json!({"id": task})).await?;
    assert_eq!(canceled["result"]["status"]["state"], "canceled", "{canceled}");

    events.extend(stream.rest().await?);
    let answer = supervisor.checked(Answer::new(events))?;
    assert_eq!(answer.state(), "canceled");
    let is_notified = async || Ok(std::fs::read_to_string(report.path())?.contains("cancelled"));
    supervisor.until("the tool server gets the cancellation", is_notified).await?;

    let again = supervisor.call("tasks/cancel", json!({"id": task})).await?;
    ensure!(again["result"]["status"]["state"] == "canceled" || again["error"]["code"] == -32002, "{again}");
    let next = supervisor.ask_in("are you there?", Some(&context)).await?;
    assert_eq!(next.result()?, "Still here.");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_does_not_stop_the_task() -> Result<()> {
    let reply = json!({"text": "one two three four five six", "delay_ms": 20});
    let scenario = Scenario::new().turn(json!({}), reply).set("prompts", json!({"answerMode": "Marker"}));
    let supervisor = scenario.setup()?.start().await?;
    let mut stream = supervisor.stream("count", None).await?;
    let events = stream.read_until(|event| event["kind"] == "task").await?;
    drop(stream);

    let task = json!({"id": events[0]["id"]});
    let over = async || {
        Ok(supervisor.call("tasks/get", task.clone()).await?["result"]["status"]["state"] == "completed")
    };
    supervisor.until("the task is completed", over).await?;
    let reply = supervisor.call("tasks/get", task.clone()).await?;
    ensure!(reply.to_string().contains("one two three four five six"), "{reply}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_in_the_terminal_client_cancels_the_task() -> Result<()> {
    signal_cancels_the_task("-INT").await
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_to_the_terminal_client_cancels_the_task() -> Result<()> {
    signal_cancels_the_task("-TERM").await
}

async fn signal_cancels_the_task(signal: &str) -> Result<()> {
    let endless = json!({"repeat": {"token": "tick ", "times": 1_000_000}, "delay_ms": 5});
    let scenario = Scenario::new().turn(json!({}), endless).set("prompts", json!({"answerMode": "Marker"}));
    let supervisor = scenario.setup()?.start().await?;
    let mut chat = supervisor.setup().command(&["chat", "--url", supervisor.url(), "-o", "json", "count"])?;
    let mut chat = chat.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(chat.stdout.take().context("no output")?).lines();
    let first = lines.next_line().await?.context("chat printed nothing")?;
    let task: Value = serde_json::from_str(&first)?;
    let task = json!({"id": task["task"]["id"].as_str().context("the first line is no task")?});
    lines.next_line().await?.context("chat printed no answer")?;

    let pid = chat.id().context("chat has ended")?.to_string();
    ensure!(Command::new("kill").args([signal, &pid]).status().await?.success());
    let ended = tokio::time::timeout(TIMEOUT, async {
        while lines.next_line().await?.is_some() {}
        chat.wait().await
    });
    let code = ended.await.context("chat did not end")??.code();
    ensure!(code.is_some_and(|code| code != 0), "chat ended with {code:?}");
    let canceled = async || {
        Ok(supervisor.call("tasks/get", task.clone()).await?["result"]["status"]["state"] == "canceled")
    };
    supervisor.until("the task is canceled", canceled).await
}
