//! A person can read why a task failed, and learns nothing about the provider.

use anyhow::{Result, ensure};
use caipe_tests::faulty_provider::{Mood, Provider};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::Supervisor;
use serde_json::{Value, json};

use crate::client::{Client, EACH, ask_all, clients};
use crate::system::{System, both};

const KEY: &str = "sk-test-0123456789abcdefghijklmnop";
const MODEL: &str = "gpt-4o-of-the-test";
/// Words in the error messages of the provider and of the script.
const WORDS: &str = "for the test";

/// Checks that the task fails, and that every client shows the reason in the words of this project.
async fn check_failure(clients: &mut [Client], system: &System, what: &str) -> Result<()> {
    for view in ask_all(clients, system, json!({"text": "hi"})).await? {
        ensure!(view.state() == "failed", "{what}{}", view.outline());
        let reason = view.status_text();
        ensure!(reason.starts_with("Agent execution failed: "), "{what}: {reason:?}{}", view.outline());
        ensure!(view.times(reason) == 1, "{what}: it is not in the text{}", view.outline());
        check_no_leak(&view.outline())?;
    }
    // The same as it is on the wire, with all that a client leaves out.
    let events = raw(&system.supervisor).await?;
    check_no_leak(&Value::from(events).to_string())
}

async fn raw(supervisor: &Supervisor) -> Result<Vec<Value>> {
    supervisor.stream("hi", None).await?.rest().await
}

fn check_no_leak(seen: &str) -> Result<()> {
    for secret in [KEY, MODEL, WORDS, "openai", "127.0.0.1"] {
        ensure!(!seen.to_lowercase().contains(&secret.to_lowercase()), "{secret:?} is in {seen}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_fails_the_task_in_words_of_ours() -> Result<()> {
    let provider = Provider::start(Mood::Good).await?;
    let model = json!({"provider": "openai", "name": MODEL, "baseUrl": provider.url()});
    let setup = Scenario::new().set("model", model).setup()?;
    let setup = setup.env("OPENAI_API_KEY", KEY).env("LLM_TIMEOUT_SECONDS", "0.5");
    let system = System::alone(setup.start().await?);
    let mut clients = clients(&EACH)?;
    for mood in [Mood::Status(401), Mood::Status(500), Mood::Held] {
        provider.becomes(mood);
        check_failure(&mut clients, &system, &format!("{mood:?}")).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_has_gathered_is_the_result_when_the_model_fails_later() -> Result<()> {
    let server = programs::fixture_mcp()?;
    let mut scenario =
        Scenario::new().agent("jira", &server, &[]).agent_calls("jira", "echo", json!({"text": "PROJ-1"}));
    for status in [401, 500] {
        let fault = json!({"error": {"status": status, "message": format!("no, {WORDS}")}});
        let phrase = format!("then {status}");
        scenario = scenario.plans(&phrase, &["jira"]).turn(json!({"user": phrase}), fault);
    }
    let mut clients = clients(&EACH)?;
    for system in both(&scenario, &["jira"]).await? {
        for status in [401, 500] {
            let text = format!("ask, then {status}");
            for view in ask_all(&mut clients, &system, json!({"text": text})).await? {
                ensure!(view.state() == "completed", "{text}{}", view.outline());
                ensure!(view.result_name() == "final_result", "{text}{}", view.outline());
                ensure!(view.result().contains("jira says: PROJ-1"), "{text}{}", view.outline());
                ensure!(view.times(view.result()) == 1, "{text}{}", view.outline());
                check_no_leak(&view.outline())?;
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_tool_ends_its_own_row_and_says_so() -> Result<()> {
    let server = programs::fixture_mcp()?;
    let scenario = Scenario::new()
        .agent("jira", &server, &[])
        .agent_calls_then("jira", "fail", json!({}), json!({"text": "It failed."}))
        .asks("ask", &["jira"]);
    let mut clients = clients(&EACH)?;
    for system in both(&scenario, &["jira"]).await? {
        for view in ask_all(&mut clients, &system, json!({"text": "ask it"})).await? {
            let ends = view.all("notification").filter(|it| it["description"] == "Tool call completed: fail");
            let ends: Vec<_> = ends.collect();
            ensure!(ends.len() == 1 && ends[0]["name"] == "tool_notification_end", "{}", view.outline());
            let text = ends[0]["text"].as_str().unwrap_or_default();
            ensure!(text.contains("error") && text.contains("Fail"), "{text:?}{}", view.outline());
            ensure!(ends[0]["step"].is_string() && ends[0]["source"] == "jira", "{}", view.outline());
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_agent_ends_its_own_row_and_says_so() -> Result<()> {
    let server = programs::fixture_mcp()?;
    let fault = json!({"error": {"status": 401, "message": format!("no, {WORDS}")}});
    let scenario = Scenario::new()
        .agent("jira", &server, &[])
        .turn(json!({"system": "You are the jira agent."}), fault)
        .plans("ask", &["jira"])
        .answers("ask", "Jira could not be asked.");
    let mut clients = clients(&EACH)?;
    for system in both(&scenario, &["jira"]).await? {
        for view in ask_all(&mut clients, &system, json!({"text": "ask it"})).await? {
            let ends = view.all("notification").filter(|it| it["description"] == "Tool call completed: jira");
            let texts: Vec<_> = ends.filter_map(|end| end["text"].as_str()).collect();
            ensure!(
                texts.len() == 1 && texts[0].starts_with("❌ Jira: error: "),
                "{texts:?}{}",
                view.outline()
            );
            ensure!(view.result() == "Jira could not be asked.", "{}", view.outline());
            check_no_leak(&view.outline())?;
        }
    }
    Ok(())
}
