use anyhow::{Result, ensure};
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use serde_json::{Value, json};

use crate::echo;

/// A tool server that is no good, and what the log must name beside the agent.
fn table() -> Result<Vec<(&'static str, Value, &'static str)>> {
    let stand_in = |mode: &str| -> Result<Value> {
        Ok(json!({"command": programs::fixture_mcp()?, "args": ["--mode", mode]}))
    };
    Ok(vec![
        ("its program does not exist", json!({"command": "caipe-no-such-program"}), "caipe-no-such-program"),
        ("it never answers", json!({"command": "sleep", "args": ["1000"]}), "within"),
        ("it is no MCP server", json!({"command": "sh", "args": ["-c", "echo hello; exit 3"]}), ""),
        ("it ends at once", stand_in("die-at-start")?, ""),
        (
            "its secret is not set",
            json!({"command": "true", "env": [{"name": "TOKEN", "value": "${CAIPE_NO_SUCH_SECRET}"}]}),
            "CAIPE_NO_SUCH_SECRET",
        ),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_its_tools_says_so_and_the_others_work() -> Result<()> {
    for (what, stdio, names) in table()? {
        let scenario = echo(&["jira"])?
            .agent_with("broken", json!([{"name": "bad", "stdio": stdio}]))
            .agent_calls("broken", "echo", json!({"text": "x"}))
            .asks("both", &["jira", "broken"])
            .set("limits", json!({"mcpStartTimeoutSeconds": 1}));
        let mut supervisor = scenario.setup()?.start().await?;
        let answer = supervisor.ask("both").await?;
        assert_eq!(answer.state(), "completed", "{what}: {}", answer.outline());
        let result = answer.result()?;
        let lines: Vec<&str> = result.lines().collect();
        assert_eq!(lines.first().copied(), Some("jira says: jira: both"), "{what}");
        ensure!(result.contains("broken says: "), "{what}: {result}");
        ensure!(!result.contains("broken says: broken: both"), "{what}: the tool worked after all: {result}");
        let warned = supervisor
            .log()
            .lines()
            .any(|line| line.contains("WARN") && line.contains("bad") && line.contains(names));
        ensure!(warned, "{what}: no warning names the server and {names:?}:\n{}", supervisor.log());
        ensure!(supervisor.is_alive()?, "{what}: it died");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_on_standard_output_does_no_harm() -> Result<()> {
    let server = programs::fixture_mcp()?;
    let scenario = Scenario::new()
        .agent("jira", &server, &["--mode", "junk"])
        .agent_calls("jira", "echo", json!({"text": "{{ user }}"}))
        .asks("noise", &["jira"]);
    let supervisor = scenario.setup()?.start().await?;
    assert_eq!(supervisor.ask("noise").await?.result()?, "jira says: jira: noise");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_within_a_call_is_reported_and_restarted() -> Result<()> {
    let server = programs::fixture_mcp()?;
    let scenario = Scenario::new()
        .agent("jira", &server, &["--mode", "die-mid-call"])
        .agent_calls("jira", "die", json!({}))
        .asks("die", &["jira"]);
    let supervisor = scenario.setup()?.start().await?;
    let answer = supervisor.ask("die").await?;
    assert_eq!(answer.state(), "completed");
    let result = answer.result()?;
    ensure!(result.contains("stopped while tool `die` was running"), "{result}");
    let ends = answer.texts("tool_notification_end");
    ensure!(ends.iter().any(|text| text == "❌ Jira: Tool Die failed with an error\n"), "{ends:?}");
    supervisor
        .until("its tools are back", async || Ok(supervisor.get("/tools").await?.1.contains("echo")))
        .await
}
