//! A human in the loop: a tool that must be allowed first.

use anyhow::{Context, Result, ensure};
use caipe_tests::migration_scenario;
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::{Answer, SseReader};
use caipe_tests::supervisor::{Supervisor, unique};
use serde_json::{Value, json};

use crate::echo;

/// Jira's tool `echo` needs approval.
pub(crate) fn careful() -> Result<Scenario> {
    let mut scenario = echo(&["jira"])?.asks("write", &["jira"]);
    scenario.change_agent("jira", "requireApproval", json!(["ec*"]));
    Ok(scenario)
}

/// The user's decision, as CAIPE's web client sends it: a new message in the same conversation.
pub(crate) async fn decide(supervisor: &Supervisor, asked: &Answer, decision: Value) -> Result<Answer> {
    let parts = json!([{"kind": "text", "text": "Form submitted"}, {"kind": "data", "data": {"resume": {"decisions": [decision]}}}]);
    let message = json!({"role": "user", "kind": "message", "messageId": unique("message"), "contextId": asked.context(), "parts": parts});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": message}});
    supervisor.checked_after(
        asked,
        Answer::new(SseReader::new(supervisor.post(body.to_string()).await?)?.rest().await?),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_waits_for_its_approval_across_a_restart() -> Result<()> {
    let setup = careful()?.setup()?;
    let supervisor = setup.start().await?;
    let asked = supervisor.ask("write it").await?;
    assert_eq!(asked.state(), "input-required", "{}", asked.outline());
    let form = asked.artifacts("UserInputMetaData").next().context("no form was shown")?.to_string();
    ensure!(form.contains("echo"), "the form does not say what is to be allowed: {form}");
    supervisor.kill().await?;

    let supervisor = setup.start().await?;
    let allowed = decide(&supervisor, &asked, json!({"type": "approve"})).await?;
    assert_eq!(allowed.state(), "completed", "{}", allowed.outline());
    assert_eq!(allowed.result()?, "jira says: jira: write it");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_tool_does_not_run() -> Result<()> {
    let supervisor = careful()?.setup()?.start().await?;
    let asked = supervisor.ask("write it").await?;
    let rejected = decide(&supervisor, &asked, json!({"type": "reject", "message": "not today"})).await?;
    assert_eq!(rejected.state(), "completed", "{}", rejected.outline());
    let result = rejected.result()?;
    ensure!(result.contains("not today") && !result.contains("jira: write it"), "{result}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_that_matches_nothing_is_a_warning_of_the_status() -> Result<()> {
    let mut scenario = echo(&["jira"])?;
    scenario.change_agent("jira", "requireApproval", json!(["delete*"]));
    let supervisor = scenario.setup()?.start().await?;
    let warned = async || {
        let warnings = migration_scenario::status(&supervisor).await?["warnings"].to_string();
        Ok(warnings.contains("agent jira: requireApproval: `delete*` matches no tool"))
    };
    supervisor.until("the pattern is a warning", warned).await
}

#[tokio::test(flavor = "multi_thread")]
async fn check_and_status_report_that_an_external_agent_asks_for_no_approval() -> Result<()> {
    let other = Scenario::new().answers("hello", "Hello.").set("agents", json!([])).setup()?.start().await?;
    let external =
        json!([{"name": "data", "external": {"url": other.url(), "description": "Knows the data."}}]);
    let setup = Scenario::new().answers("hello", "Hello.").set("agents", external).setup()?;
    let note = "it is another program, whose tool calls cannot require approval here";
    let checked = setup.run(&["check", "-f", "supervisor.yaml"]).await?;
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    ensure!(checked.status.success() && text.contains(&format!("note: agent data: {note}")), "{text}");
    let supervisor = setup.start().await?;
    let reported = async || Ok(migration_scenario::agent(&supervisor, "data").await?["message"] == note);
    supervisor.until("the status reports it", reported).await
}
