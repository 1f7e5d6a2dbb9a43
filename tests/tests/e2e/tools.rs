//! Real MCP servers in containers, in every way in which an agent can have one; and a model provider in a pod.

use anyhow::{Result, ensure};
use caipe_tests::cluster::objects::{DEPLOYMENTS, condition};
use caipe_tests::live::{self, Live};
use caipe_tests::programs::workspace;

/// The supervisor of `fixtures/cluster/tools.yaml`.
const NAME: &str = "tools";

/// Asks all agents, each of which calls a tool of its own server.
async fn everybody_tells(live: &Live) -> Result<()> {
    let answer = live.ask(NAME, "Tell me all.").await?;
    let text = answer.result()?;
    for expected in
        ["clock: Etc/UTC", "Message: Note the tides", "files: The moon is full.", "echo: Echo: hello"]
    {
        ensure!(text.contains(expected), "{expected} is missing: {text}");
    }
    Ok(())
}

#[test]
fn servers_in_python_and_in_node_answer_wherever_their_agents_run() -> Result<()> {
    live::with("tools", async |live| {
        live.volume(&format!("{NAME}.data"))?;
        for file in ["model", NAME] {
            let manifest = workspace().join(format!("fixtures/cluster/{file}.yaml"));
            live.kubectl(&["apply", "-f", &manifest.to_string_lossy()])?;
        }
        let available = |seen: &serde_json::Value| condition(seen, "Available").starts_with("True");
        live.until("the model answers", DEPLOYMENTS, "model", available).await?;
        live.until_settled(NAME).await?;
        everybody_tells(live).await?;
        // Its server goes along into the agent's own pod.
        live.migrate(NAME, "files", true).await?;
        everybody_tells(live).await
    })
}
