//! Remote agents that delegate to others, each in a pod of its own that has only the keys of its delegates.

use anyhow::{Context, Result, ensure};
use caipe_tests::live::pods::of_agent;
use caipe_tests::live::scenario_run::NAME;
use caipe_tests::live::{self, Live};
use caipe_tests::scenario::Scenario;
use serde_json::{Value, json};

const AGENTS: [&str; 3] = ["first", "second", "third"];

/// A chain of three remote agents. The last one repeats what it is asked.
fn chain() -> Scenario {
    Scenario::new()
        .set("distributedAgents", json!(["all"]))
        .delegating("first", "second", "{{ user }}")
        .delegating("second", "third", "{{ user }}")
        .agent_with("third", json!([]))
        .turn(json!({"system": "You are the third agent."}), json!({"text": "third: {{ user }}"}))
        .asks("pass", &["first"])
}

/// The agents whose credentials the pod of this one has.
async fn credentials(live: &Live, agent: &str) -> Result<Vec<&'static str>> {
    let pods = live.pods(&of_agent(NAME, agent)).await?;
    let volumes: Vec<Value> =
        pods.first().and_then(|pod| pod["spec"]["volumes"].as_array()).context("no pod")?.clone();
    let mounted = |name: &str| volumes.iter().any(|volume| volume["name"] == format!("secrets-of-{name}"));
    Ok(AGENTS.into_iter().filter(|name| mounted(name)).collect())
}

#[test]
fn a_task_goes_through_three_remote_agents() -> Result<()> {
    live::with("delegates", async |live| {
        live.declare(NAME, &chain())?;
        live.until_settled(NAME).await?;
        let answer = live.ask(NAME, "pass it on").await?.result()?;
        // The supervisor asks each agent by its name.
        ensure!(answer.contains("third: first: pass it on"), "{answer}");
        assert_eq!(credentials(live, "first").await?, ["second"]);
        assert_eq!(credentials(live, "second").await?, ["third"]);
        ensure!(credentials(live, "third").await?.is_empty());
        Ok(())
    })
}
