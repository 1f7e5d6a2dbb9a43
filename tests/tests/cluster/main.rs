//! The operator and its definition on a real Kubernetes.

mod crashes;
mod definition;
mod examples;
mod leaders;
mod node;
mod outage;
mod quickstart;
mod restarts;
mod rights;
mod rules;
mod runbook;
mod scenarios;
mod upgrade;

use std::process::Command;

use anyhow::Result;
use caipe_tests::cluster::Cluster;
use caipe_tests::migration_scenario::says;
use caipe_tests::programs::workspace;
use caipe_tests::scenario::Scenario;
use serde_json::{Value, json};

/// Agents that answer `NAME here`, each with a tool server; a supervisor that asks all of them when told to `ask`.
fn scenario(agents: &[&str]) -> Scenario {
    let program = std::path::Path::new("/usr/local/bin/caipe-fixture-mcp");
    let scenario = agents.iter().fold(Scenario::new(), |scenario, agent| scenario.agent(agent, program, &[]));
    says(scenario, "here", agents, 0).asks("ask", agents)
}

/// Applies a scenario as a resource of this name, with its script beside it.
fn apply(cluster: &Cluster, name: &str, scenario: &Scenario) -> Result<Value> {
    let script = format!("{name}-script");
    cluster.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": script},
        "data": {"script.yaml": scenario.script()}}))?;
    let resource = scenario.resource(name, json!({"configMapRef": {"name": script, "key": "script.yaml"}}));
    cluster.apply(&resource)?;
    Ok(resource)
}

/// A shell at the root of the repository, for the cluster's administrator.
fn shell(cluster: &Cluster) -> Command {
    let mut shell = Command::new("sh");
    cluster.administer(&mut shell);
    shell.current_dir(workspace());
    shell
}
