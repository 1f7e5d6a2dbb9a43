//! The commands beside `serve`.

use anyhow::{Context, Result, ensure};
use caipe_tests::supervisor::Setup;
use serde_json::{Value, json};

use crate::echo;

fn lines(output: &[u8]) -> Result<Vec<Value>> {
    let text = std::str::from_utf8(output)?;
    text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_prints_every_event_for_scripts() -> Result<()> {
    let supervisor = echo(&["jira", "github"])?.asks("compare", &["jira", "github"]).setup()?.start().await?;
    let output =
        supervisor.setup().run(&["chat", "--url", supervisor.url(), "-o", "json", "compare these"]).await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let events = lines(&output.stdout)?;
    ensure!(events.len() > 5, "{events:?}");
    let last = events.last().context("no event")?.to_string();
    ensure!(last.contains("completed"), "{last}");
    ensure!(
        events.iter().any(|event| event.to_string().contains("jira says: jira: compare these")),
        "{events:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_shows_plan_calls_and_answer_to_people() -> Result<()> {
    let supervisor = echo(&["jira", "github"])?.asks("compare", &["jira", "github"]).setup()?.start().await?;
    let output = supervisor.setup().run(&["chat", "--url", supervisor.url(), "compare these"]).await?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "[Jira] compare these",
        "[Github] compare these",
        "Calling Agent Jira",
        "github says: github: compare these",
    ] {
        ensure!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert_eq!(text.matches("jira says: ").count(), 1, "the answer is there once:\n{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chat_says_when_nobody_is_there() -> Result<()> {
    let output = Setup::new()?.run(&["chat", "--url", "http://127.0.0.1:9", "hello"]).await?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(!output.status.success() && words.contains("127.0.0.1:9"), "{:?}: {words}", output.status);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_lists_the_core_agents_without_a_file() -> Result<()> {
    let output = Setup::new()?.env("ENABLE_JIRA", "false").run(&["agents", "-o", "json"]).await?;
    let agents = lines(&output.stdout)?;
    let names: Vec<&str> = agents.iter().filter_map(|agent| agent["name"].as_str()).collect();
    ensure!(names.contains(&"github") && !names.contains(&"jira"), "{names:?}");
    Ok(())
}

/// The lines of `agents doctor -o json` of one agent with the stand-in for a tool server, and whether all is well.
async fn examined(agent: Value, name: &[&str]) -> Result<(bool, Vec<Value>)> {
    let mut scenario = echo(&["jira", "github"])?;
    for (key, value) in agent.as_object().into_iter().flatten() {
        scenario.change_agent("jira", key, value.clone());
    }
    let setup = scenario.setup()?;
    let file = setup.dir().join("supervisor.yaml");
    let file = file.to_str().unwrap_or_default();
    let output = setup.run(&[&["agents", "doctor", "-o", "json", "-f", file], name].concat()).await?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.success(), lines(&output.stdout).with_context(|| words)?))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_starts_each_server_and_compares_its_tools() -> Result<()> {
    let (is_well, agents) = examined(json!({}), &[]).await?;
    ensure!(is_well && agents.len() == 2, "{agents:?}");
    ensure!(agents[0]["tools"].as_array().is_some_and(|tools| !tools.is_empty()), "{agents:?}");
    for (change, part) in [
        (json!({"tools": ["echo", "ehco"]}), "`ehco` matches no tool"),
        (json!({"requireApproval": ["detele_*"]}), "`detele_*` matches no tool"),
        (json!({"mcp": [{"name": "gone", "stdio": {"command": "/nowhere/server"}}]}), "gone: "),
        (
            json!({"mcp": [{"name": "site", "http": {"url": "http://${SITE_HOST}:9"}}]}),
            "SITE_HOST is not set",
        ),
    ] {
        let (is_well, agents) = examined(change, &["jira"]).await?;
        ensure!(!is_well && agents.len() == 1, "{part}: {agents:?}");
        ensure!(agents[0]["faults"].to_string().contains(part), "{part}: {agents:?}");
    }
    let (is_well, agents) = examined(json!({}), &["nobody"]).await?;
    ensure!(!is_well && agents.is_empty(), "{agents:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pipe_and_an_argument_that_is_not_text_are_no_panic() -> Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let program = caipe_tests::programs::supervisor()?;
    let output = tokio::process::Command::new("sh")
        .args(["-c", "\"$0\" agents | true; \"$0\" agents | head -1 >/dev/null"])
        .arg(&program)
        .output()
        .await?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(!words.contains("panicked"), "{words}");
    let bytes = std::ffi::OsStr::from_bytes(b"\xff");
    let output = tokio::process::Command::new(&program)
        .args(["check".as_ref(), "-f".as_ref(), bytes])
        .output()
        .await?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(
        output.status.code() == Some(1) && words.contains("failed to read"),
        "{:?}: {words}",
        output.status
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_a_server_says_what_is_wrong_with_the_key() -> Result<()> {
    let setup = echo(&["jira"])?.setup()?.env("A2A_AUTH_SHARED_KEY", "right");
    let supervisor = setup.start().await?;
    for (token, expected) in [("wrong", "refused the key"), ("", "requires a key")] {
        let setup = Setup::new()?.env("A2A_AUTH_SHARED_KEY", token);
        let output = setup.run(&["agents", "--url", supervisor.url()]).await?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success() && words.contains(expected), "{token:?}: {words}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_is_neither_on_nor_off_is_refused_in_its_own_words() -> Result<()> {
    let output = Setup::new()?.run(&["serve", "--push", "maybe"]).await?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(words.contains("give on or off") && !words.contains("true"), "{words}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn card_prints_the_card() -> Result<()> {
    let output = Setup::new()?.run(&["card"]).await?;
    let card: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(card["name"].is_string() && card["capabilities"]["streaming"] == true, "{card}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn both_old_names_start_the_same_server() -> Result<()> {
    for name in ["platform-engineer", "platform-engineer-single"] {
        let setup = Setup::new()?;
        let link = setup.dir().join(name);
        std::os::unix::fs::symlink(caipe_tests::programs::supervisor()?, &link)?;
        let output = tokio::process::Command::new(&link).arg("--help").output().await?;
        let text = String::from_utf8(output.stdout)?;
        ensure!(output.status.success() && text.contains("--listen"), "{name}: {text}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn install_puts_the_program_where_another_container_finds_it() -> Result<()> {
    let setup = Setup::new()?;
    let place = setup.dir().join("caipe/bin/caipe-supervisor");
    let path = place.to_str().context("a path")?;
    // Twice: what is there is replaced.
    for _ in 0..2 {
        let output = setup.run(&["install", path]).await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let beside = std::fs::read_dir(setup.dir().join("caipe/bin"))?.count();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&place)?.permissions());
    assert_eq!((beside, mode & 0o7777), (1, 0o755));
    let output = tokio::process::Command::new(&place).arg("--version").output().await?;
    ensure!(output.status.success());
    let output = setup.run(&["install", "/proc/no/such/place"]).await?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(!output.status.success() && words.contains("/proc/no/such/place"), "{words}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn prompt_prints_the_prompt_with_the_sections_of_the_resource() -> Result<()> {
    let sections = json!([{"title": "Changes and risk", "text": "Never change anything."}]);
    let scenario = echo(&["jira"])?.set("prompts", json!({"sections": sections}));
    let setup = scenario.setup()?;
    let run = async |name: &str| setup.run(&["prompt", name, "-f", "supervisor.yaml"]).await;
    let output = run("supervisor").await?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(text.contains("# Changes and risk\n\nNever change anything.\n\n# Input from the user"), "{text}");
    ensure!(
        text.contains("- `jira` (plan prefix `[Jira]`)") && !text.contains("Reading needs no permission"),
        "{text}"
    );
    let counted = String::from_utf8(output.stderr)?;
    ensure!(counted.contains("supervisor: about ") && counted.contains(" tokens of prompt"), "{counted}");
    let agent = String::from_utf8(run("jira").await?.stdout)?;
    ensure!(agent.starts_with("Agent: jira\n\nYou are the jira agent."), "{agent}");
    let example = caipe_tests::programs::workspace().join("examples/prompts.yaml");
    let example = example.to_str().unwrap_or_default();
    let output = setup.run(&["prompt", "jira", "-f", example]).await?;
    let text = String::from_utf8(output.stdout)?;
    let added = "# Our projects\n\n- Incidents are in OPS, requests in PLAT.\n- Ask for the component before you create a \
                 ticket.\n\n# Answering\n";
    ensure!(text.contains(added) && text.contains("You may only read"), "{text}");
    ensure!(text.contains("# Finding things\n") && !text.contains("# Changing things"), "{text}");
    let unknown = run("nobody").await?;
    let fault = String::from_utf8(unknown.stderr)?;
    ensure!(!unknown.status.success() && fault.contains("name supervisor or one of jira"), "{fault}");
    Ok(())
}
