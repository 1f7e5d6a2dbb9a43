//! The operator and its supervisors on real nodes: each scenario with people who ask all the time. `make e2e` runs them.

mod agent;
mod argocd;
mod catalogue;
mod crashes;
mod delegates;
mod faults;
mod figures;
mod invalid;
mod killed_agent;
mod kubernetes;
mod limits;
mod migrations;
mod node;
mod operator;
mod pages;
mod permissions;
mod reconciliation;
mod replicas;
mod rights;
mod runbook;
mod slack;
mod spec;
mod supervisor;
mod table;
mod tools;
mod troubles;
mod upgrade;
mod workspace;

use caipe_tests::migration_scenario::says;
use caipe_tests::scenario::Scenario;
use serde_json::json;

/// Agents without tools that answer `NAME here`, and a supervisor that asks all of them when told to `ask`.
fn scenario_of(agents: &[&str]) -> Scenario {
    let scenario =
        agents.iter().fold(Scenario::new(), |scenario, agent| scenario.agent_with(agent, json!([])));
    says(scenario, "here", agents, 0).asks("ask", agents)
}
