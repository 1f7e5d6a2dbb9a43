//! The script of a scripted model that changes while it is in use.

use anyhow::{Context, Result, ensure};
use caipe_tests::migration_scenario::{replace, says, status};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::{Answer, text_of};
use caipe_tests::supervisor::Supervisor;
use serde_json::json;
use tokio::process::Command;

async fn until_refused(supervisor: &Supervisor, reason: &str) -> Result<()> {
    let refused = async || {
        let status = status(supervisor).await?;
        Ok(status["refused"]
            .as_str()
            .is_some_and(|reason_text| reason_text.contains("script.yaml") && reason_text.contains(reason)))
    };
    supervisor.until(&format!("the script is refused: {reason}"), refused).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_changes_is_followed_and_a_broken_one_is_refused() -> Result<()> {
    let script = |text: &str| Scenario::new().answers("*", text).script();
    let setup = Scenario::new().answers("*", "One.").setup()?;
    let supervisor = setup.start().await?;
    let first = supervisor.ask("hi").await?;
    assert_eq!(first.result()?, "One.");
    let answers = async |text: &str| {
        let answer =
            async || Ok(supervisor.ask_in("and now?", Some(first.context())).await?.result()? == text);
        supervisor.until(&format!("the answer is {text}"), answer).await
    };
    replace(&setup, "script.yaml", &script("Two."))?;
    answers("Two.").await?;
    let now = status(&supervisor).await?;
    assert_eq!((&now["epoch"], &now["refused"]), (&json!(1), &json!(null)), "{now}");

    for broken in ["turns: [{ reply: { text: '{{ nobody' } }]", "turns: 5"] {
        replace(&setup, "script.yaml", broken)?;
        until_refused(&supervisor, "").await?;
        assert_eq!(supervisor.ask("hi").await?.result()?, "Two.", "{broken}");
        replace(&setup, "script.yaml", &script("Two."))?;
        let taken = async || Ok(status(&supervisor).await?["refused"].is_null());
        supervisor.until("the last good script is back", taken).await?;
    }
    ensure!(supervisor.log().contains("the last good one stays"), "{}", supervisor.log());

    // A file that is gone may be about to come back; it is looked for at the signal.
    std::fs::remove_file(setup.dir().join("script.yaml"))?;
    let pid = supervisor.pid().context("it runs")?.to_string();
    Command::new("kill").args(["-HUP", &pid]).status().await?;
    until_refused(&supervisor, "failed to read").await?;
    assert_eq!(supervisor.ask("hi").await?.result()?, "Two.");
    replace(&setup, "script.yaml", &script("Three."))?;
    answers("Three.").await?;
    assert_eq!(status(&supervisor).await?["epoch"], 2, "what was refused is no epoch");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_under_way_keeps_its_script() -> Result<()> {
    let server = programs::fixture_mcp()?;
    let scenario = |text: &str, ms: u64| {
        let scenario = Scenario::new().agent("jira", &server, &[]);
        let answer = json!({"text": format!("jira {text}")});
        scenario.agent_calls_then("jira", "slow", json!({"ms": ms}), answer).asks("ask", &["jira"])
    };
    let setup = scenario("old", 3000).setup()?;
    let supervisor = setup.start().await?;
    let mut slow = supervisor.stream("ask", None).await?;
    let mut events = slow.read_until(|event| text_of(event).contains("Jira: Calling tool: Slow")).await?;
    replace(&setup, "script.yaml", &scenario("new", 0).script())?;
    let taken = async || Ok(status(&supervisor).await?["runningEpoch"] == 1);
    supervisor.until("the new script is taken", taken).await?;
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira new");
    events.extend(slow.rest().await?);
    let answer = supervisor.checked(Answer::new(events))?;
    assert_eq!(answer.result()?, "jira old", "{}", answer.outline());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_of_an_agent_is_followed_too() -> Result<()> {
    let server = programs::fixture_mcp()?;
    let own = |place: &str| says(Scenario::new(), place, &["jira"], 0).script();
    let setup = Scenario::new().agent("jira", &server, &[]).asks("ask", &["jira"]).setup()?;
    let setup = setup.file("jira.yaml", &own("one"))?.env("SUBAGENT_JIRA_LLM_PROVIDER", "scripted");
    let file = setup.dir().join("jira.yaml");
    let setup = setup.env("SUBAGENT_JIRA_MODEL", file);
    let supervisor = setup.start().await?;
    assert_eq!(supervisor.ask("ask").await?.result()?, "jira one");
    replace(&setup, "jira.yaml", &own("two"))?;
    let answers = async || Ok(supervisor.ask("ask").await?.result()? == "jira two");
    supervisor.until("the agent answers from the new script", answers).await?;
    assert_eq!(status(&supervisor).await?["agents"][0]["phase"], "Ready");
    Ok(())
}
