//! `agents`: who is enabled, where each one runs, what it needs.

use std::process::ExitCode;

use caipe_crds::rendered::{Home, RenderedAgent};
use serde_json::json;

use super::args::{Agents, Output};
use crate::config::{Environment, Settings, environment};

pub(super) fn run(args: &Agents) -> anyhow::Result<ExitCode> {
    let settings = Settings::load(args.file.as_deref(), environment())?;
    for warning in &settings.warnings {
        eprintln!("warning: {warning}");
    }
    match args.output {
        Output::Text => print_table(&settings),
        Output::Json => print_json(&settings),
    }
    Ok(ExitCode::SUCCESS)
}

fn print_json(settings: &Settings) {
    for agent in &settings.spec.agents {
        println!("{}", as_json(agent, &settings.env));
    }
}

fn print_table(settings: &Settings) {
    let rows: Vec<[String; 4]> = settings.spec.agents.iter().map(|agent| row(agent, &settings.env)).collect();
    let head = ["AGENT", "HOME", "TOOL SERVERS", "MISSING"].map(str::to_owned);
    let width =
        |column: usize| rows.iter().chain([&head]).map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    for [agent, home, servers, missing] in std::iter::once(&head).chain(&rows) {
        let line = format!("{agent:0$}  {home:1$}  {servers:2$}  {missing}", widths[0], widths[1], widths[2]);
        println!("{}", line.trim_end());
    }
}

fn row(agent: &RenderedAgent, env: &Environment) -> [String; 4] {
    let servers: Vec<&str> = agent.mcp.iter().map(|server| server.name.as_str()).collect();
    [agent.name.clone(), home(agent), servers.join(", "), missing(agent, env).join(", ")]
}

fn home(agent: &RenderedAgent) -> String {
    match &agent.home {
        Home::InProcess {} => "in-process".to_owned(),
        Home::Remote { url, .. } => url.clone(),
    }
}

/// What this process's environment lacks for the agent; one that runs elsewhere has an environment of its own.
fn missing(agent: &RenderedAgent, env: &Environment) -> Vec<String> {
    if matches!(agent.home, Home::Remote { .. }) {
        return Vec::new();
    }
    agent.required_env.iter().filter(|name| env.get(*name).is_none_or(String::is_empty)).cloned().collect()
}

fn as_json(agent: &RenderedAgent, env: &Environment) -> serde_json::Value {
    json!({
        "name": agent.name,
        "title": agent.title,
        "description": agent.description,
        "home": agent.home,
        "servers": agent.mcp.iter().map(|server| &server.name).collect::<Vec<_>>(),
        "missing": missing(agent, env),
    })
}
