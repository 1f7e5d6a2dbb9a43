//! The built supervisor, seen from outside: what people, clients and platforms rely on.

mod a2a_tools;
mod abuse;
mod agent;
mod answers;
mod approval;
mod approvers;
mod auth;
mod bad_input;
mod benchmark;
mod budgets;
mod cancel;
mod clients_page;
mod commands;
mod compose;
mod connectivity;
mod cors;
mod depth;
mod encryption;
mod environment_page;
mod evaluation;
mod facts;
mod kb;
mod kill;
mod knowledge;
mod memory;
mod metrics;
mod migration;
mod mongodb;
mod oauth2;
mod probes;
mod push;
mod quickstart;
mod redis;
mod replica_faults;
mod replica_pushes;
mod replica_scaling;
mod replicas;
mod routing;
mod script;
mod skill_figures;
mod skills;
mod skills_openapi;
mod stop;
mod store_copy;
mod sub_agents;
mod takeover;
mod tool_domains;
mod workspace;

use anyhow::Result;
use caipe_tests::programs;
use caipe_tests::scenario::Scenario;
use serde_json::json;

/// Agents on the stand-in MCP server; each echoes what it is asked.
fn echo(agents: &[&str]) -> Result<Scenario> {
    let server = programs::fixture_mcp()?;
    let scenario = agents.iter().fold(Scenario::new(), |scenario, agent| scenario.agent(agent, &server, &[]));
    let turns =
        |scenario: Scenario, agent: &&str| scenario.agent_calls(agent, "echo", json!({"text": "{{ user }}"}));
    Ok(agents.iter().fold(scenario, turns))
}
