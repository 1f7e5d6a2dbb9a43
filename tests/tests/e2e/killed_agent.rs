//! Pods of a remote agent are killed one after the other: a store keeps the agent's tasks, or the supervisor starts them again,
//! because all tools of the agent may be repeated.

use std::time::Instant;

use anyhow::{Context as _, Result};
use caipe_tests::live::pods::{is_ready, of_agent};
use caipe_tests::live::scenario_run::{AGENT, NAME, Operator, Outcome, ScenarioRun, scenario};
use caipe_tests::live::{self, Live};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::until;
use serde_json::{Value, json};

use crate::replicas::{in_redis, redis};
use crate::table::tell;

/// Number of pods that are killed.
const KILLS: usize = 3;

/// The usual supervisor with a remote agent, all of whose tools may be repeated.
fn repeatable() -> Scenario {
    let mut scenario = scenario().set("distributedAgents", json!([AGENT]));
    scenario.change_agent(AGENT, "readTools", json!(["*"]));
    scenario
}

/// The same agent with this number of pods, which keep its tasks in the Redis at this port.
fn stored(replicas: usize, port: u16) -> Scenario {
    let egress = json!([{"ports": [{"port": port}]}]);
    let mut scenario = repeatable().set("networkPolicy", json!({"egress": egress}));
    scenario.change_agent(AGENT, "store", in_redis());
    scenario.change_agent(AGENT, "replicas", json!(replicas));
    scenario
}

/// Kills a pod of the agent, and waits until as many as before are ready.
async fn kill_one(live: &Live) -> Result<()> {
    let labels = of_agent(NAME, AGENT);
    let old = live.pods(&labels).await?;
    let victim = old.first().context("no pod of the agent")?;
    live.kill_pod(victim).await?;
    let is_victim = |pod: &Value| pod["metadata"]["uid"] == victim["metadata"]["uid"];
    until("another pod of the agent is ready", async || {
        let pods = live.pods(&labels).await?;
        Ok(pods.len() == old.len() && pods.iter().all(|pod| is_ready(pod) && !is_victim(pod)))
    })
    .await
}

/// Kills pods of the agent; writes the row of the table.
async fn killed(live: &Live, scenario: &Scenario, row: &str) -> Result<Outcome> {
    let mut run = ScenarioRun::start(live, scenario, Operator::usual()).await?;
    let mut killed = Instant::now();
    for _ in 0..KILLS {
        killed = Instant::now();
        run.during(kill_one(live)).await?;
        run.wait_for_answers().await?;
    }
    let outcome = run.finish_repeatable(killed).await?;
    tell(row, &outcome)?;
    outcome.status_follows()?;
    Ok(outcome)
}

#[test]
fn a_killed_agent_with_repeatable_tools_fails_no_answer() -> Result<()> {
    live::with("agent-repeated", async |live| {
        let row = "a remote agent's pod is killed three times, all its tools may be repeated";
        killed(live, &repeatable(), row).await?.tally.undisturbed()
    })
}

#[test]
fn a_killed_agent_with_redis_fails_no_answer() -> Result<()> {
    live::with_addresses("agent-stored", async |live| {
        let server = redis(live).await?;
        let row = "a remote agent's pod is killed three times, the agent has Redis";
        killed(live, &stored(1, server.port()), row).await?.tally.undisturbed()
    })
}

#[test]
fn a_killed_pod_of_two_of_an_agent_with_redis_fails_no_answer() -> Result<()> {
    live::with_addresses("agent-replicas", async |live| {
        let server = redis(live).await?;
        let row = "one of two pods of a remote agent with Redis is killed, three times";
        killed(live, &stored(2, server.port()), row).await?.tally.undisturbed()
    })
}
