//! What outlives the process: conversations, tasks, and the truth about what was interrupted.

use anyhow::{Result, ensure};
use caipe_tests::scenario::{Scenario, answer};
use caipe_tests::supervisor::{Setup, Supervisor};
use serde_json::{Value, json};

fn remembers() -> Scenario {
    Scenario::new()
        .answers("first", "Noted.")
        .answers("second", "You began with: {{ history[0].text }}")
        .turn(json!({"user": "long"}), json!({"repeat": {"token": "tick ", "times": 100_000}, "delay_ms": 5}))
}

async fn restarted(setup: &Setup) -> Result<Supervisor> {
    setup.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_after_a_restart() -> Result<()> {
    let setup = remembers().setup()?;
    let supervisor = setup.start().await?;
    let first = supervisor.ask("first: my name is Ada").await?;
    supervisor.kill().await?;

    let supervisor = restarted(&setup).await?;
    let second = supervisor.ask_in("second: what did I say?", Some(first.context())).await?;
    assert_eq!(second.result()?, "You began with: first: my name is Ada");
    assert_eq!(second.context(), first.context());

    let task = supervisor.call("tasks/get", json!({"id": first.task()})).await?;
    assert_eq!(task["result"]["status"]["state"], "completed", "{task}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_conversation_knows_nothing_of_it() -> Result<()> {
    let supervisor = remembers().setup()?.start().await?;
    supervisor.ask("first: my name is Ada").await?;
    let second = supervisor.ask("second: what did I say?").await?;
    assert_eq!(second.result()?, "You began with: second: what did I say?");
    Ok(())
}

/// Polls a task until it has ended.
async fn ended(supervisor: &Supervisor, task: &str) -> Result<Value> {
    let status = async || -> Result<Value> {
        let reply = supervisor.call("tasks/get", json!({"id": task})).await?;
        ensure!(reply["result"].is_object(), "the task is lost: {reply}");
        Ok(reply["result"]["status"].clone())
    };
    let over =
        async || Ok(matches!(status().await?["state"].as_str(), Some("completed" | "failed" | "canceled")));
    supervisor.until("the interrupted task has ended", over).await?;
    status().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_killed_is_reported_truthfully() -> Result<()> {
    // After the restart the model is quick, so that a run that is taken over ends.
    let slow = Scenario::new().turn(
        json!({"user": "long"}),
        json!({"repeat": {"token": "tick ", "times": 100_000}, "delay_ms": 5}),
    );
    let setup = slow.setup()?;
    let supervisor = setup.start().await?;
    let mut stream = supervisor.stream("long", None).await?;
    let seen = stream.read_until(|event| event["artifact"]["name"] == "streaming_result").await?;
    let (task, context) =
        (seen[0]["id"].as_str().unwrap_or_default(), seen[0]["contextId"].as_str().unwrap_or_default());
    supervisor.kill().await?;

    let quick = json!({"turns": [{"when": {"user": "long"}, "reply": answer("It was short after all.")},
        {"when": {"user": "again"}, "reply": answer("Still here.")}]});
    let supervisor = restarted(&setup.file("script.yaml", &quick.to_string())?).await?;
    let status = ended(&supervisor, task).await?;
    match status["state"].as_str() {
        Some("completed") => {
            let reply = supervisor.call("tasks/get", json!({"id": task})).await?;
            ensure!(
                reply.to_string().contains("It was short after all."),
                "completed without its answer: {reply}"
            );
        }
        Some("failed") => ensure!(!status["message"].is_null(), "failed without a reason: {status}"),
        other => anyhow::bail!("the task is {other:?}"),
    }
    let again = supervisor.ask_in("again", Some(context)).await?;
    assert_eq!(again.result()?, "Still here.");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_stops_at_sigterm_and_lets_a_short_answer_end() -> Result<()> {
    let reply = json!({"text": "one two three four five", "delay_ms": 100});
    let scenario = Scenario::new().turn(json!({}), reply).set("prompts", json!({"answerMode": "Marker"}));
    let supervisor = scenario.setup()?.start().await?;
    let mut stream = supervisor.stream("count", None).await?;
    let mut events = stream.read_until(|event| event["artifact"]["name"] == "streaming_result").await?;
    let stopped = supervisor.stop();
    let rest = stream.rest();
    let (code, rest) = tokio::join!(stopped, rest);
    assert_eq!(code?, Some(0));
    events.extend(rest?);
    let answer = caipe_tests::stream::Answer::new(events);
    assert_eq!(answer.state(), "completed", "{}", answer.outline());
    assert_eq!(answer.texts("streaming_result").concat(), "one two three four five");
    Ok(())
}
