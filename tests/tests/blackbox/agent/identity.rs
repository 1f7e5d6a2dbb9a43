//! An agent that is a folder: `IDENTITY.md` and `CONTEXT.md`.

use anyhow::{Result, ensure};
use caipe_tests::programs;
use caipe_tests::supervisor::Setup;
use serde_json::{Value, json};

const IDENTITY: &str = "# Data Pipelines

Runs the pipelines of the data team.

## Find a run
Looks for runs by name or day.

## Retry
Starts failed steps again.
";

/// The folder, with a tool server if there is one to name, and a model that calls its tool.
fn setup(front: &str) -> Result<Setup> {
    let script = json!({"turns": [
        {"when": {"system": "The team is in Berlin.", "turn": 0}, "reply": {"calls": [{"name": "echo", "arguments": {"text": "{{ user }}"}}]}},
        {"when": {"system": "Runs the pipelines"}, "reply": {"text": "It said: {{ last_result | first_line }}"}},
    ]});
    let setup = Setup::new()?.file("script.yaml", &script.to_string())?;
    let setup = setup
        .file("IDENTITY.md", &format!("---\n{front}\n---\n{IDENTITY}"))?
        .file("CONTEXT.md", "The team is in Berlin.\n")?;
    let (script, folder) = (setup.dir().join("script.yaml"), setup.dir().to_path_buf());
    let setup = setup.env("LLM_PROVIDER", "scripted").env("SCRIPTED_MODEL_FILE", script);
    Ok(setup.serving(["agent", "pipelines"]).argument("--identity").argument(folder))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_an_agent_with_skills_prompt_and_tools() -> Result<()> {
    let server = json!([{"name": "tools", "stdio": {"command": programs::fixture_mcp()?}}]);
    let agent = setup(&format!("autoApprove: [echo]\nmcp: {server}"))?.start().await?;
    let card: Value = serde_json::from_str(&agent.get("/.well-known/agent-card.json").await?.1)?;
    assert_eq!(
        (&card["name"], &card["description"]),
        (&json!("pipelines"), &json!("Runs the pipelines of the data team."))
    );
    let skills: Vec<_> =
        card["skills"].as_array().into_iter().flatten().map(|it| (&it["id"], &it["description"])).collect();
    assert_eq!(
        skills,
        [
            (&json!("find-a-run"), &json!("Looks for runs by name or day.")),
            (&json!("retry"), &json!("Starts failed steps again.")),
        ]
    );
    let answer = agent.ask("rerun it").await?;
    assert_eq!(answer.texts("tool_notification_start"), ["🔧 Pipelines: Calling tool: Echo\n"]);
    assert_eq!(answer.texts("complete_result"), ["It said: rerun it"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_folder_is_reported_with_its_path() -> Result<()> {
    let setup = setup("tool: [x]")?;
    let folder = setup.dir().to_string_lossy().into_owned();
    let cases = [
        (
            vec!["agent", "pipelines", "--card", "--identity", &folder],
            "IDENTITY.md: tool: unknown key: use one of",
        ),
        (
            vec!["agent", "pipelines", "--card", "--identity", "/nowhere"],
            "failed to read /nowhere/IDENTITY.md",
        ),
    ];
    for (arguments, says) in cases {
        let output = setup.run(&arguments).await?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words}");
        ensure!(words.contains(says), "{words}");
    }
    Ok(())
}
