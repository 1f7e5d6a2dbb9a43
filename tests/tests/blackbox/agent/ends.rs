//! How an agent's task can end: asked back, cancelled, failed, stopped with its process.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use caipe_tests::agent::{self, transcript};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::{Answer, SseReader, text_of};
use caipe_tests::supervisor::{Supervisor, unique};
use serde_json::{Value, json};

use crate::echo;

/// The user's decision, to the task that waits for it.
async fn decide(agent: &Supervisor, asked: &Answer, decision: Value) -> Result<Answer> {
    let parts = json!([{"kind": "data", "data": {"resume": {"decisions": [decision]}}}]);
    let message = json!({"role": "user", "kind": "message", "messageId": unique("message"),
        "taskId": asked.task(), "contextId": asked.context(), "parts": parts});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": message}});
    Ok(Answer::new(SseReader::new(agent.post(body.to_string()).await?)?.rest().await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_must_be_allowed_waits_and_the_same_task_goes_on() -> Result<()> {
    let mut scenario = echo(&["jira"])?;
    scenario.change_agent("jira", "requireApproval", json!(["ec*"]));
    let setup = agent::setup(&scenario, "jira")?;
    let agent = setup.start().await?;
    let asked = agent.ask("write it").await?;
    assert_eq!(asked.state(), "input-required", "{}", asked.outline());
    let form = asked.artifacts("UserInputMetaData").next().context("no form")?;
    let data = &form["artifact"]["parts"][0]["data"];
    assert_eq!(
        (&data["action_name"], &data["arguments"]),
        (&json!("echo"), &json!({"text": "write it"})),
        "{form}"
    );
    assert_eq!(form["artifact"]["metadata"]["sourceAgent"], "jira", "{form}");
    ensure!(
        asked.texts("tool_notification_start").is_empty(),
        "nothing has been called: {}",
        asked.outline()
    );
    ensure!(asked.status_text().contains("echo"), "{}", asked.status_text());

    // The question outlives the process.
    agent.kill().await?;
    let agent = setup.start().await?;
    let allowed = decide(&agent, &asked, json!({"type": "approve"})).await?;
    assert_eq!((allowed.task(), allowed.state()), (asked.task(), "completed"), "{}", allowed.outline());
    assert_eq!(allowed.texts("tool_notification_start"), ["🔧 Jira: Calling tool: Echo\n"]);
    assert_eq!(allowed.texts("complete_result"), ["jira says: write it"]);

    let asked = agent.ask("write more").await?;
    let rejected = decide(&agent, &asked, json!({"type": "reject", "message": "not today"})).await?;
    ensure!(rejected.texts("complete_result")[0].contains("not today"), "{}", rejected.outline());
    ensure!(rejected.texts("tool_notification_start").is_empty(), "{}", rejected.outline());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_task_is_canceled_and_its_tool_server_is_notified() -> Result<()> {
    let server = programs::fixture_mcp()?;
    let report = tempfile::NamedTempFile::new()?;
    let path = report.path().to_string_lossy().into_owned();
    let scenario = Scenario::new()
        .agent("jira", &server, &["--mode", "hang-in-call", "--state", &path])
        .agent_calls("jira", "hang", json!({}));
    let agent = agent::setup(&scenario, "jira")?.start().await?;
    let mut stream = agent.stream("hang", None).await?;
    let mut events = stream.read_until(|event| text_of(event).contains("Calling tool: Hang")).await?;
    let task = events[0]["id"].as_str().context("no task")?.to_owned();
    let canceled = agent.call("tasks/cancel", json!({"id": task})).await?;
    assert_eq!(canceled["result"]["status"]["state"], "canceled", "{canceled}");
    events.extend(stream.rest().await?);
    let answer = agent.checked(Answer::new(events))?;
    assert_eq!(
        transcript(&answer)[2..],
        [
            "tool_notification_start|🔧 Jira: Calling tool: Hang\n",
            "tool_notification_end|❌ Jira: Tool Hang canceled\n",
            "canceled|",
        ]
    );
    let is_notified = async || Ok(std::fs::read_to_string(report.path())?.contains("cancelled"));
    agent.until("the tool server gets the cancellation", is_notified).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_a_failed_task_and_an_error_for_older_readers() -> Result<()> {
    let failing = json!({"error": {"status": 400, "message": "no such model"}});
    let scenario = Scenario::new().agent_with("jira", json!([])).turn(json!({}), failing);
    let answer = agent::setup(&scenario, "jira")?.start().await?.ask("fail").await?;
    assert_eq!(answer.state(), "failed", "{}", answer.outline());
    let errors = answer.texts("error_result");
    ensure!(
        errors.len() == 1
            && errors[0] == answer.status_text()
            && errors[0].contains("does not accept the request"),
        "{errors:?}"
    );
    ensure!(answer.texts("complete_result").is_empty(), "{}", answer.outline());
    Ok(())
}

/// An agent that says six words slowly.
fn slow(delay: u64) -> Scenario {
    let reply = json!({"text": "one two three four five six", "delay_ms": delay});
    Scenario::new().agent_with("slow", json!([])).turn(json!({}), reply)
}

/// How many tasks the agent says it works on.
async fn active(agent: &Supervisor) -> Result<Value> {
    let status: Value = serde_json::from_str(&agent.get("/internal/status").await?.1)?;
    Ok(status["agents"][0]["activeTasks"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_under_way_end_before_the_process_does() -> Result<()> {
    let agent = agent::setup(&slow(500), "slow")?.start().await?;
    assert_eq!(active(&agent).await?, 0);
    let mut stream = agent.stream("count", None).await?;
    let mut events = stream.read_until(|event| text_of(event).contains("one")).await?;
    assert_eq!(active(&agent).await?, 1);
    let (stopped, rest) = tokio::join!(agent.stop(), stream.rest());
    assert_eq!(stopped?, Some(0));
    events.extend(rest?);
    assert_eq!(Answer::new(events).texts("complete_result"), ["one two three four five six"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_goes_on_with_its_task_when_it_starts_again() -> Result<()> {
    let setup = agent::setup(&slow(50), "slow")?;
    let agent = setup.start().await?;
    let mut stream = agent.stream("count", None).await?;
    let events = stream.read_until(|event| text_of(event).contains("two")).await?;
    let task = events[0]["id"].as_str().context("no task")?.to_owned();
    agent.kill().await?;

    let agent = setup.start().await?;
    let done = async || {
        let got = agent.call("tasks/get", json!({"id": task})).await?;
        Ok(got["result"]["status"]["state"] == "completed")
    };
    agent.until("the task is completed", done).await?;
    let got = agent.call("tasks/get", json!({"id": task})).await?;
    let artifacts = got["result"]["artifacts"].as_array().cloned().unwrap_or_default();
    let whole: Vec<_> = artifacts.iter().filter(|it| it["name"] == "complete_result").collect();
    ensure!(whole.len() == 1 && whole[0]["parts"][0]["text"] == "one two three four five six", "{got}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_in_the_same_directory_keeps_its_own_tasks() -> Result<()> {
    let scenario = slow(20).answers("*", "Hello.");
    let setup = scenario.setup()?;
    let agent = setup.clone().serving(["agent", "slow"]).start().await?;
    let supervisor = setup.start().await?;
    let mut stream = agent.stream("count", None).await?;
    let events = stream.read_until(|event| text_of(event).contains("one")).await?;
    let task = events[0]["id"].as_str().context("no task")?;
    let other = supervisor.call("tasks/get", json!({"id": task})).await?;
    assert_eq!(other["error"]["code"], -32001, "{other}");
    let rest = tokio::time::timeout(Duration::from_secs(30), stream.rest()).await??;
    assert_eq!(Answer::new(rest).state(), "completed");
    Ok(())
}
