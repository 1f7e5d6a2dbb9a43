//! Agents that start late, die, return, or answer under another name.

use anyhow::{Context, Result, ensure};
use caipe_fixtures::redis::RedisServer;
use caipe_fixtures::tcp_proxy::Link;
use caipe_tests::agent;
use caipe_tests::migration_scenario::{self, scenario, until};
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::text_of;
use caipe_tests::supervisor::Supervisor;
use serde_json::json;

const BOTH: [&str; 2] = ["jira", "github"];

/// A supervisor with a remote Jira behind a link, which leads to `jira`, and GitHub in its own process.
async fn behind(link: &Link) -> Result<Supervisor> {
    agent::remote(scenario("here", &BOTH)?.setup()?, "jira", &link.url()).start().await
}

async fn jira() -> Result<Supervisor> {
    agent::setup(&scenario("there", &BOTH)?, "jira")?.start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_agent_joins_by_itself_and_until_then_the_model_gets_the_reason() -> Result<()> {
    let jira = jira().await?;
    let link = Link::to(jira.url()).await?;
    link.cut();
    // It starts, and is ready, without Jira.
    let supervisor = behind(&link).await?;
    until(&supervisor, "jira", "Remote", "Unreachable").await?;
    let ready = supervisor.get("/ready").await?.1;
    ensure!(ready.contains(r#""agents":{"jira":"Unreachable"}"#), "{ready}");
    let without = supervisor.ask("ask").await?;
    let answer = without.result()?;
    ensure!(answer.contains("agent jira: failed to reach") && answer.contains("github here"), "{answer}");
    ensure!(
        without.texts("tool_notification_end").iter().any(|text| text.starts_with("❌")),
        "no failure is shown:{}",
        without.outline()
    );

    link.mend();
    until(&supervisor, "jira", "Remote", "Ready").await?;
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira there\ngithub here");
    let seen = migration_scenario::agent(&supervisor, "jira").await?;
    ensure!(seen["latencyMs"].is_u64() && seen["lastProbeTime"].is_string(), "{seen}");
    assert_eq!((&seen["protocolVersion"], &seen["message"]), (&json!("1.0"), &json!(null)), "{seen}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_dies_is_shown_and_comes_back_without_a_restart() -> Result<()> {
    let jira = jira().await?;
    let (link, setup) = (Link::to(jira.url()).await?, jira.setup().clone());
    let supervisor = behind(&link).await?;
    until(&supervisor, "jira", "Remote", "Ready").await?;
    jira.kill().await?;
    until(&supervisor, "jira", "Remote", "Unreachable").await?;
    let dead = migration_scenario::agent(&supervisor, "jira").await?;
    ensure!(dead["message"].as_str().is_some_and(|message| !message.is_empty()), "{dead}");
    let again = setup.start().await?;
    link.connect_to(again.url())?;
    until(&supervisor, "jira", "Remote", "Ready").await?;
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira there\ngithub here");
    Ok(())
}

/// An agent that is killed in the middle of its answer: with a store that survives it, the answer arrives, once.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_with_a_store_of_its_own_answers_although_it_is_killed() -> Result<()> {
    let server = RedisServer::start(&[])?;
    let words = (0..40).map(|word| format!("word{word} ")).collect::<Vec<_>>().concat();
    let is_agent = json!({"system": "You are the jira agent."});
    let mut scenario = Scenario::new()
        .agent_with("jira", json!([]))
        .turn(is_agent, json!({"text": words, "delay_ms": 50}))
        .asks("tell", &["jira"]);
    scenario.change_agent("jira", "store", json!({"redis": {"secretRef": {"name": "redis"}}}));
    let setup = agent::setup(&scenario, "jira")?.env("REDIS_URL", server.url());
    let jira = setup.start().await?;
    let again = setup.listening_at(jira.url());
    let supervisor = agent::remote(scenario.setup()?, "jira", jira.url()).start().await?;
    until(&supervisor, "jira", "Remote", "Ready").await?;
    let mut stream = supervisor.stream("tell me", None).await?;
    stream.read_until(|event| text_of(event).contains("word9")).await?;
    jira.kill().await?;
    let _jira = again.start().await?;
    let rest = stream.rest().await?;
    let last = rest.last().context("nothing after the kill")?;
    assert_eq!(last["status"]["state"], "completed", "{last:#}");
    let task = supervisor.call("tasks/get", json!({"id": last["taskId"]})).await?;
    let artifacts = task["result"]["artifacts"].as_array().context("no artifacts")?;
    let answer = artifacts.iter().find(|artifact| artifact["name"] == "final_result").context("no answer")?;
    assert_eq!(caipe_tests::stream::parts_text(&answer["parts"]).trim(), words.trim());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_came_back_a_moment_ago_is_asked_at_once() -> Result<()> {
    let jira = jira().await?;
    let link = Link::to(jira.url()).await?;
    link.cut();
    let supervisor = behind(&link).await?;
    until(&supervisor, "jira", "Remote", "Unreachable").await?;
    link.mend();
    // Not waited for: asking has it looked at.
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira there\ngithub here");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_agent_at_the_address_is_not_taken_for_the_one() -> Result<()> {
    let github = agent::setup(&scenario("there", &BOTH)?, "github")?.start().await?;
    let supervisor = agent::remote(scenario("here", &BOTH)?.setup()?, "jira", github.url()).start().await?;
    until(&supervisor, "jira", "Remote", "Unreachable").await?;
    let wrong = migration_scenario::agent(&supervisor, "jira").await?;
    ensure!(wrong["message"].as_str().is_some_and(|message| message.contains("github")), "{wrong}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_wants_no_checks_gets_none_and_can_ask_all_the_same() -> Result<()> {
    let jira = jira().await?;
    let setup = agent::remote(scenario("here", &BOTH)?.setup()?, "jira", jira.url());
    let supervisor = setup.env("SKIP_AGENT_CONNECTIVITY_CHECK", "true").start().await?;
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira there\ngithub here");
    let unchecked = migration_scenario::agent(&supervisor, "jira").await?;
    assert_eq!(unchecked["phase"], "Pending", "{unchecked}");
    assert_eq!(unchecked["message"], "connectivity checks are turned off");
    assert_eq!(unchecked["lastProbeTime"], json!(null));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_is_closed_where_everything_is() -> Result<()> {
    let setup = scenario("here", &BOTH)?.setup()?.env("A2A_AUTH_SHARED_KEY", "s3cret");
    let supervisor = setup.start().await?;
    assert_eq!(supervisor.get("/internal/status").await?.0, 401);
    let url = format!("{}/internal/status", supervisor.url());
    let response = reqwest::Client::new().get(url).bearer_auth("s3cret").send().await?;
    assert_eq!(response.status(), 200);

    // The program has the key in its environment here.
    let listed = setup.run(&["agents", "--url", supervisor.url()]).await?;
    let table = String::from_utf8_lossy(&listed.stdout).into_owned();
    ensure!(listed.status.success(), "{table}{}", String::from_utf8_lossy(&listed.stderr));
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines,
        [
            vec!["AGENT", "PLACEMENT", "PHASE", "CREDENTIALS", "MESSAGE"],
            vec!["jira", "in-process", "Ready"],
            vec!["github", "in-process", "Ready"]
        ]
    );
    Ok(())
}
