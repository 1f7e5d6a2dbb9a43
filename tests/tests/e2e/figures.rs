//! How long things take, and how much.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use caipe_tests::live::pods::of_agent;
use caipe_tests::live::report_table::seconds;
use caipe_tests::live::scenario_run::NAME;
use caipe_tests::live::{self, Live};
use caipe_tests::migration_scenario::says;
use caipe_tests::scenario::Scenario;
use serde_json::json;

use crate::table::FIGURES;

/// Largest size of the image in bytes. The embedded knowledge base takes 3 MiB of it, the driver of MongoDB 1.7 MiB, and the
/// copies and the encryption of stores with Sentinel and cluster 0.8 MiB, the Slack bot and the skills 1.4 MiB.
const LARGEST_IMAGE: u64 = 25 << 20;

/// Agents without tool servers.
fn agents(count: usize, away: bool) -> Scenario {
    let names: Vec<String> = (1..=count).map(|number| format!("agent-{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let scenario = names.iter().fold(Scenario::new(), |scenario, name| scenario.agent_with(name, json!([])));
    let scenario = says(scenario, "here", &names, 0).asks("ask", &names);
    scenario.set("distributedAgents", if away { json!(["all"]) } else { json!([]) })
}

#[test]
fn supervisors_of_all_sizes_get_ready() -> Result<()> {
    live::with("figures", async |live| {
        for away in [false, true] {
            for count in [1, 5, 14] {
                let room = live.another(&format!("{count}-{}", if away { "away" } else { "home" })).await?;
                let outcome = measure(&room, count, away).await;
                room.abandon().await;
                outcome.with_context(|| format!("{count} agents, away: {away}"))?;
            }
        }
        let operators = live.operators().await?;
        let operator = operators.first().context("there is no operator")?;
        FIGURES.report("memory of the operator", &[mebibytes(live.memory(operator).await?)])
    })
}

async fn measure(room: &Live, count: usize, away: bool) -> Result<()> {
    let begun = Instant::now();
    room.declare(NAME, &agents(count, away))?;
    room.until_settled(NAME).await?;
    let (agents, place) =
        (if count == 1 { "agent" } else { "agents" }, if away { "remote" } else { "in-process" });
    let row = format!("from `kubectl apply` to Ready, {count} {agents} {place}");
    FIGURES.report(&row, &[seconds(begun.elapsed())])?;
    let answer = room.ask(NAME, "ask").await?.result()?;
    ensure!(answer.lines().count() == count, "{answer}");
    if count != 14 {
        return Ok(());
    }
    let pods = room.supervisor_pods(NAME).await?;
    let row = format!("memory of a supervisor with 14 agents {place}");
    FIGURES.report(&row, &[mebibytes(room.memory(pods.first().context("no pod")?).await?)])?;
    if away {
        let pods = room.pods(&of_agent(NAME, "agent-01")).await?;
        let memory = room.memory(pods.first().context("no pod")?).await?;
        FIGURES.report("memory of a remote agent", &[mebibytes(memory)])?;
    }
    Ok(())
}

#[test]
fn the_image_is_small() -> Result<()> {
    live::with("size", async |_| {
        let images =
            std::env::var_os("CAIPE_IMAGES").map(PathBuf::from).context("CAIPE_IMAGES is not set")?;
        let size = images.join("caipe-operator.tar").metadata()?.len();
        FIGURES.report("the image, as it is pulled", &[mebibytes(size)])?;
        ensure!(size < LARGEST_IMAGE, "the image has {}", mebibytes(size));
        Ok(())
    })
}

fn mebibytes(bytes: u64) -> String {
    format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}
