//! The bot over HTTP, with the workspace of another project.

use caipe_tests::slack_workspace::{SIGNING_SECRET, Workspace};

use super::agent::Agent;
use super::*;

/// A bot of a workspace. Returns it with the URL of its events.
async fn start(setup: &Setup, supervisor: &str, workspace: &Workspace) -> Result<(Child, String)> {
    let mut command = setup.command(&["slack", "--url", supervisor])?;
    command
        .env("SLACK_BOT_MODE", "http")
        .env("SLACK_BOT_TOKEN", caipe_tests::slack_workspace::BOT_TOKEN)
        .env("SLACK_SIGNING_SECRET", SIGNING_SECRET)
        .env("SLACK_API_URL", workspace.api())
        .env("CAIPE_SLACK_DATABASE", setup.dir().join("slack.sqlite3"));
    let (bot, url) = bot_with_endpoints(command).await?;
    until_status(&url, "/ready", 200).await?;
    Ok((bot, format!("{url}/slack/events")))
}

/// Mentions the bot, and waits until its messages fulfil a condition.
async fn ask(
    workspace: &Workspace,
    events: &str,
    text: &str,
    files: Value,
    holds: impl Fn(&[Value]) -> bool,
) -> Result<Vec<Value>> {
    let user = caipe_tests::slack_workspace::BOT_USER;
    let mut message = workspace.write(&format!("<@{user}> {text}")).await?;
    message["files"] = files;
    let response = workspace.signed(events, &message)?.send().await?;
    ensure!(response.status().is_success(), "the bot rejects the event: {}", response.status());
    let thread = message["ts"].as_str().context("the message has no time stamp")?;
    let answers = async || Ok(holds(&workspace.answers(thread).await?));
    let waited = until(&format!("no answer to {text}"), answers).await;
    let answers = workspace.answers(thread).await?;
    waited.with_context(|| format!("{answers:#?}"))?;
    Ok(answers)
}

fn markdown(answers: &[Value]) -> Vec<&str> {
    let blocks = answers.iter().filter_map(|answer| answer["blocks"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "markdown").filter_map(|block| block["text"].as_str()).collect()
}

fn is_complete(answers: &[Value]) -> bool {
    answers.iter().any(|answer| answer.to_string().contains("feedback_buttons"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_over_http_is_answered_in_one_message_that_is_updated() -> Result<()> {
    let Some(workspace) = Workspace::start().await? else { return Ok(()) };
    let setup = slow("word").setup()?;
    let supervisor = setup.start().await?;
    let (_bot, events) = start(&setup, supervisor.url(), &workspace).await?;
    let answers = ask(&workspace, &events, "slow", json!([]), is_complete).await?;
    assert_eq!(answers.len(), 1, "{answers:#?}");
    assert_eq!(markdown(&answers), [words("word").trim()]);
    ensure!(answers[0]["edited"].is_object(), "the message is not updated: {answers:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_and_uploaded_over_http() -> Result<()> {
    let Some(workspace) = Workspace::start().await? else { return Ok(()) };
    let (setup, agent) = (Setup::new()?, Agent::start(&["text/plain"]).await?);
    agent.answers(&[json!({"text": "A table."}), json!({"raw": "YSxiCg==", "filename": "table.csv"})]);
    let (_bot, events) = start(&setup, agent.url(), &workspace).await?;
    let attached = workspace.attach("app.txt", "out of memory").await?;
    let has_file = |answers: &[Value]| answers.iter().any(|answer| answer["files"][0]["name"] == "table.csv");
    let answers = ask(&workspace, &events, "why?", json!([attached]), has_file).await?;
    let message = agent.messages().remove(0);
    assert_eq!(message[1]["text"], "The attached file app.txt:\nout of memory", "{message}");
    let files: Vec<&Value> =
        answers.iter().filter_map(|answer| answer["files"].as_array()).flatten().collect();
    assert_eq!(files.len(), 1, "{answers:#?}");
    assert_eq!(workspace.content(files[0]).await?, "a,b\n");
    Ok(())
}
