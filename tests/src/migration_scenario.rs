//! Agents that say where they run, and ways to see and to say where that is.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::programs;
use crate::scenario::Scenario;
use crate::supervisor::{Setup, Supervisor};

/// Agents that answer `NAME PLACE`, each with a tool server; a supervisor that asks all of them when told to `ask`.
pub fn scenario(place: &str, agents: &[&str]) -> Result<Scenario> {
    scenario_taking(place, agents, 0)
}

/// The same with agents that take their time, in milliseconds.
pub fn scenario_taking(place: &str, agents: &[&str], delay_ms: u64) -> Result<Scenario> {
    let server = programs::fixture_mcp()?;
    let scenario = agents.iter().fold(Scenario::new(), |scenario, agent| scenario.agent(agent, &server, &[]));
    Ok(says(scenario, place, agents, delay_ms).asks("ask", agents))
}

/// The turns of these agents.
pub fn says(scenario: Scenario, place: &str, agents: &[&str], delay_ms: u64) -> Scenario {
    agents.iter().fold(scenario, |scenario, agent| {
        let when = json!({"system": format!("You are the {agent} agent.")});
        scenario.turn(when, json!({"text": format!("{agent} {place}"), "delay_ms": delay_ms}))
    })
}

/// What `GET /internal/status` says.
pub async fn status(supervisor: &Supervisor) -> Result<Value> {
    let (code, body) = supervisor.get("/internal/status").await?;
    anyhow::ensure!(code == 200, "{code}: {body}");
    serde_json::from_str(&body).with_context(|| format!("not JSON: {body}"))
}

/// What it says of one agent; nothing if there is no such agent.
pub async fn agent(supervisor: &Supervisor, name: &str) -> Result<Value> {
    let status = status(supervisor).await?;
    let found = status["agents"].as_array().into_iter().flatten().find(|agent| agent["name"] == name);
    Ok(found.cloned().unwrap_or_default())
}

/// Waits until an agent has this placement and phase.
pub async fn until(supervisor: &Supervisor, name: &str, placement: &str, phase: &str) -> Result<()> {
    let holds = async || {
        let agent = agent(supervisor, name).await?;
        Ok(agent["placement"] == placement && agent["phase"] == phase)
    };
    let waited = supervisor.until(&format!("{name} is {placement} and {phase}"), holds).await;
    match waited {
        Ok(()) => Ok(()),
        Err(error) => Err(error.context(status(supervisor).await?)),
    }
}

/// Changes the resource of a running supervisor, as an editor does: all at once.
pub fn edit(setup: &Setup, change: impl FnOnce(&mut Value)) -> Result<()> {
    let file = setup.dir().join("supervisor.yaml");
    // The tests' resources are JSON, which is YAML.
    let mut resource: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    change(&mut resource["spec"]);
    replace(setup, "supervisor.yaml", &resource.to_string())
}

/// Puts another file in the place of one.
pub fn replace(setup: &Setup, name: &str, content: &str) -> Result<()> {
    let draft = setup.dir().join("draft");
    std::fs::write(&draft, content)?;
    std::fs::rename(&draft, setup.dir().join(name)).context("failed to replace the file")
}
