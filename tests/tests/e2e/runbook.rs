//! The runbook's troubles that take a node: each is made, then its commands are typed as they stand there.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use caipe_tests::cluster::objects::{SUPERVISORS, condition};
use caipe_tests::doc_commands;
use caipe_tests::live::node::Node;
use caipe_tests::live::pods::of_agent;
use caipe_tests::live::{self, Live};
use caipe_tests::programs::workspace;
use serde_json::json;

/// The namespace in the runbook.
const TEAM: &str = "team-a";
/// The first words of its blocks.
const BLOCK: &str = "```console\n";

/// A section of the runbook, in two parts: before what is to be done on the node, and after it.
fn section(heading: &str) -> Result<(String, String)> {
    let text = std::fs::read_to_string(workspace().join("docs/runbook.md"))?;
    let section = doc_commands::section(&text, heading)?;
    let first = section.find(BLOCK).with_context(|| format!("{heading} has no commands"))? + BLOCK.len();
    let second = section[first..].find(BLOCK).map_or(section.len(), |place| first + place);
    let (before, after) = section.split_at(second);
    Ok((before.to_owned(), after.to_owned()))
}

/// A shell at the root of the repository, for the cluster's administrator.
pub(crate) fn shell(live: &Live) -> Command {
    let mut shell = Command::new("sh");
    live.administer(&mut shell);
    shell.current_dir(workspace());
    shell
}

/// Types the commands of a part of the page.
pub(crate) fn type_commands(live: &Live, part: &str) -> Result<()> {
    let steps = doc_commands::steps(part);
    steps.iter().try_for_each(|step| step.with(TEAM, &live.namespace).holds(|| shell(live)))
}

/// The quick start.
pub(crate) async fn declare(live: &Live) -> Result<()> {
    live.volume("platform.data")?;
    live.kubectl(&["apply", "-f", &workspace().join("fixtures/quickstart-cluster.yaml").to_string_lossy()])?;
    live.until_settled("platform").await.map(drop)
}

/// The quick start, with an agent in a pod of its own.
async fn quick_start(live: &Live) -> Result<()> {
    declare(live).await?;
    live.migrate("platform", "tide", true).await
}

/// A program of the node is down; with it back, all is well again.
async fn down(live: &Live, node: &Node, heading: &str, program: &str) -> Result<()> {
    let (during, after) = section(heading)?;
    node.kill(program)?;
    // `kubectl` cannot wait for what takes a minute without a program that is down.
    let seen = await_trouble(live, program).and_then(|()| type_commands(live, &during));
    node.start(program)?;
    seen?;
    type_commands(live, &after)?;
    live.until_settled("platform").await.map(drop)
}

/// Waits for what Kubernetes takes its time to say.
fn await_trouble(live: &Live, program: &str) -> Result<()> {
    let wanted = match program {
        "kubelet" => "Unknown",
        "containerd" => "False",
        _ => return Ok(()),
    };
    let wanted = format!("--for=condition=Ready={wanted}");
    live.kubectl(&["wait", &wanted, "node", "--all", "--timeout=3m"]).map(drop)
}

#[test]
fn what_it_says_of_nodes_and_of_the_control_plane_is_so() -> Result<()> {
    live::with_node("runbook", async |live, node| {
        quick_start(live).await?;
        for (heading, program) in [
            ("## A node is lost", "kubelet"),
            ("## The container runtime of a node is down", "containerd"),
            ("## The API server is down", "kube-apiserver"),
            ("## etcd is down", "etcd"),
        ] {
            println!("{heading}");
            down(live, node, heading, program).await.with_context(|| heading.to_owned())?;
        }
        Ok(())
    })
}

#[test]
fn what_it_says_of_memory_is_so() -> Result<()> {
    live::with_node("runbook-memory", async |live, node| {
        quick_start(live).await?;
        let limit = json!([{"op": "add", "path": "/spec/agents/0/resources", "value": {"limits": {"memory": "128Mi"}}}]);
        live.kubectl(&["patch", "caipe", "platform", "--type", "json", "-p", &limit.to_string()])?;
        live.kubectl(&["rollout", "status", "deployment", "platform-tide", "--timeout=1m"])?;
        live.until_settled("platform").await?;
        let pods = live.pods(&of_agent("platform", "tide")).await?;
        // One that does nothing needs no memory.
        let work = async {
            loop {
                drop(live.ask("platform", "when does the tide turn?").await);
            }
        };
        tokio::select! {
            starved = node.starve(pods.first().context("no pod of the agent")?) => starved?,
            () = work => {}
        }
        let reported = |seen: &serde_json::Value| seen["status"]["agents"].to_string().contains("OOMKilled");
        live.until("the status says why", SUPERVISORS, "platform", reported).await?;
        let (looks, mends) = section("## A container is killed for its memory")?;
        type_commands(live, &looks)?;
        type_commands(live, &mends)?;
        let seen = live.until_settled("platform").await?;
        ensure!(condition(&seen, "Ready").starts_with("True"), "{seen}");
        Ok(())
    })
}
