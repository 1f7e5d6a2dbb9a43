//! Agents made with the official SDKs, which speak as upstream's sub-agents do, in the place of one of ours: the user
//! cannot tell which it is.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use caipe_tests::agent::{self, transcript};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::sdk::{Program, Sdk};
use caipe_tests::stream::{Answer, SseReader, text_of};
use caipe_tests::supervisor::Supervisor;
use serde_json::json;

/// Every kind of agent that is not ours: the SDK, its arguments.
const OTHERS: [(Sdk, &[&str]); 4] =
    [(Sdk::Python03, &[]), (Sdk::Python03, &["--old"]), (Sdk::Python10, &[]), (Sdk::Python10, &["--compat"])];

const START: &str = "🔧 Jira: Calling tool: Echo\n";
const END: &str = "✅ Jira: Tool Echo completed\n";

fn scenario() -> Result<Scenario> {
    let tools = programs::fixture_mcp()?;
    let jira =
        Scenario::new().agent("jira", &tools, &[]).agent_calls("jira", "echo", json!({"text": "{{ user }}"}));
    Ok(jira.asks("show", &["jira"]))
}

/// A supervisor whose agent `jira` is at this address.
async fn supervisor(url: &str) -> Result<Supervisor> {
    agent::remote(scenario()?.setup()?, "jira", url).start().await
}

/// The same with an agent made with an SDK; nothing if that is not installed.
async fn with(sdk: Sdk, arguments: &[&str]) -> Result<Option<(Program, Supervisor)>> {
    let Some((program, url)) = Program::agent(sdk, arguments).await? else { return Ok(None) };
    Ok(Some((program, supervisor(&url).await?)))
}

/// The user's stream, where our own agent is in a process of its own.
async fn ours(text: &str) -> Result<Vec<String>> {
    let jira = agent::setup(&scenario()?, "jira")?.start().await?;
    Ok(transcript(&supervisor(jira.url()).await?.ask(text).await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_stream_is_the_same_whoever_made_the_agent() -> Result<()> {
    let expected = ours("show it").await?;
    let place = |line: &str| expected.iter().position(|known| known.ends_with(line)).context(line.to_owned());
    ensure!(place(START)? < place(END)?, "{expected:#?}");
    let in_process = scenario()?.setup()?.start().await?.ask("show it").await?;
    ensure!(transcript(&in_process) == expected, "in one process: {:#?}", transcript(&in_process));
    for (sdk, arguments) in OTHERS {
        let Some((_program, supervisor)) = with(sdk, arguments).await? else { continue };
        let shown = transcript(&supervisor.ask("show it").await?);
        ensure!(
            shown == expected,
            "{sdk:?} {arguments:?}: {shown:#?}\nnot {expected:#?}\nlog: {}",
            supervisor.log()
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_answer_is_in_no_notification_and_once_in_each_result() -> Result<()> {
    for (sdk, arguments) in OTHERS {
        let Some((_program, supervisor)) = with(sdk, arguments).await? else { continue };
        let long = format!("show {}", "long ".repeat(100).trim_end());
        let answer = supervisor.ask(&long).await?;
        for name in ["tool_notification_start", "tool_notification_end"] {
            for text in answer.texts(name) {
                ensure!(!text.contains("jira says"), "{sdk:?} {arguments:?}: {text}");
                ensure!(!text.contains("**") && !text.contains("Task..."), "{sdk:?} {arguments:?}: {text}");
                // What the supervisor says of its own answer is of no call.
                let names = text.contains(": ") || text.starts_with('✍');
                ensure!(names, "{sdk:?} {arguments:?}: without a name: {text}");
            }
        }
        let complete = answer.texts("complete_result").concat();
        ensure!(complete.matches("jira says:").count() == 1, "{sdk:?} {arguments:?}: {complete}");
    }
    Ok(())
}

fn is_notification(event: &serde_json::Value, text: &str) -> bool {
    event["kind"] == "artifact-update" && text_of(event) == text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notification_comes_while_the_tool_is_still_at_work() -> Result<()> {
    for (sdk, arguments) in OTHERS {
        let Some((_program, supervisor)) = with(sdk, arguments).await? else { continue };
        let mut stream = supervisor.stream("show slow", None).await?;
        stream.read_until(|event| is_notification(event, START)).await?;
        let started = Instant::now();
        stream.read_until(|event| is_notification(event, END)).await?;
        let apart = started.elapsed();
        ensure!(apart > Duration::from_millis(500), "{sdk:?} {arguments:?}: {apart:?} apart, not a second");
        stream.rest().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_and_comes_back_gets_the_rest() -> Result<()> {
    for (sdk, arguments) in OTHERS {
        let Some((_program, supervisor)) = with(sdk, arguments).await? else { continue };
        let mut stream = supervisor.stream("show slow", None).await?;
        let before = Answer::new(stream.read_until(|event| is_notification(event, START)).await?);
        drop(stream);
        let again = json!({"jsonrpc": "2.0", "id": 2, "method": "tasks/resubscribe", "params": {"id": before.task()}});
        let rest = Answer::new(SseReader::new(supervisor.post(again.to_string()).await?)?.rest().await?);
        ensure!(rest.events[0]["kind"] == "task", "{sdk:?}: {}", rest.events[0]);
        ensure!(rest.state() == "completed", "{sdk:?}: {}", rest.state());
        ensure!(rest.texts("tool_notification_end").contains(&END.to_owned()), "{sdk:?}: {}", rest.outline());
        ensure!(!rest.texts("tool_notification_start").contains(&START.to_owned()), "{sdk:?}: shown again");
    }
    Ok(())
}
