//! An agent that loses its tasks with its process, because nothing keeps them.

use std::path::Path;

use anyhow::{Result, ensure};
use caipe_tests::agent;
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::{Answer, SseReader, text_of};
use caipe_tests::supervisor::message;
use serde_json::{Value, json};

/// The extension of clients that show the text of agents.
const ACTIVITY: &str = "https://caipe.io/a2a/extensions/activity/v1";

const WHOLE: &str = "one two three four five six";

/// The answer of a supervisor to a client that shows the text of agents. Its agent calls a tool that notes its calls, then answers
/// slowly; it is killed after the third word, and starts again without its task.
async fn killed(notes: &Path, read_tools: Value) -> Result<Answer> {
    let server = programs::fixture_mcp()?;
    let arguments = ["--mode", "noting", "--state", &notes.display().to_string()];
    let slow = json!({"text": WHOLE, "delay_ms": 400});
    let mut scenario = Scenario::new()
        .agent("jira", &server, &arguments)
        .agent_calls_then("jira", "note", json!({"text": "called", "ms": 0}), slow)
        .asks("count", &["jira"]);
    scenario.change_agent("jira", "readTools", read_tools);
    let setup = agent::setup(&scenario, "jira")?.env("LANGGRAPH_CHECKPOINT_TYPE", "memory");
    let jira = setup.start().await?;
    let url = jira.url().to_owned();
    let supervisor = agent::remote(scenario.setup()?, "jira", &url).start().await?;

    let mut params = message("count them", None);
    params["message"]["extensions"] = json!([ACTIVITY]);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params});
    let mut stream = SseReader::new(supervisor.post(body.to_string()).await?)?;
    let mut events = stream.read_until(|event| is_text(event) && text_of(event).contains("three")).await?;
    jira.kill().await?;
    let _jira = setup.listening_at(&url).start().await?;
    events.extend(stream.rest().await?);
    supervisor.checked(Answer::new(events))
}

/// Whether an event is text that the agent streams.
fn is_text(event: &Value) -> bool {
    let artifact = &event["artifact"];
    artifact["name"] == "streaming_result" && artifact["metadata"]["sourceAgent"] == "jira"
}

/// The text of the agent as a client shows it in the end.
fn shown(answer: &Answer) -> String {
    let mut shown = String::new();
    for event in answer.events.iter().filter(|event| is_text(event)) {
        if event["append"] != true {
            shown.clear();
        }
        shown.push_str(&text_of(event));
    }
    shown
}

fn calls(notes: &Path) -> Result<usize> {
    Ok(std::fs::read_to_string(notes)?.lines().count())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_task_with_tools_that_only_read_is_done_again_and_its_answer_arrives_whole() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let notes = directory.path().join("notes");
    let answer = killed(&notes, json!(["*"])).await?;
    assert_eq!((answer.result()?.as_str(), answer.state()), (WHOLE, "completed"), "{}", answer.outline());
    assert_eq!(answer.texts("complete_result"), [WHOLE], "{}", answer.outline());
    assert_eq!(shown(&answer), WHOLE, "{}", answer.outline());
    let notices = answer.texts("tool_notification_start");
    let notices = notices.iter().filter(|text| text.contains("The agent has lost its work and starts again"));
    assert_eq!((notices.count(), calls(&notes)?), (1, 2), "{}", answer.outline());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_task_with_a_tool_that_must_not_be_repeated_is_reported_and_not_done_again() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let notes = directory.path().join("notes");
    // One other tool is not declared to read.
    let answer = killed(&notes, json!(["note"])).await?;
    ensure!(
        !answer.texts("tool_notification_start").concat().contains("starts again"),
        "{}",
        answer.outline()
    );
    let result = answer.result()?;
    ensure!(result.contains("it does not know the task any more"), "{result}");
    ensure!(result.contains("look what was done before you ask it again"), "{result}");
    assert_eq!(calls(&notes)?, 1, "{}", answer.outline());
    Ok(())
}
