//! `agents doctor`: examines the agents of a file.

use std::process::ExitCode;

use anyhow::ensure;
use caipe_crds::names::normal;
use caipe_crds::rendered::{Placement, RenderedAgent};
use serde_json::json;

use super::args::{Doctor, Output};
use super::chat::one_line;
use super::print;
use crate::agents::{Examination, examine};
use crate::config::{Settings, environment};

/// Examines one agent after another, so that their servers do not start at once. Fails if one has a fault.
pub(super) async fn run(args: &Doctor) -> anyhow::Result<ExitCode> {
    let settings = Settings::load(args.file.as_deref(), environment())?;
    let wanted = args.name.as_deref().map(normal);
    let is_wanted = |agent: &&RenderedAgent| wanted.as_ref().is_none_or(|name| *name == agent.name);
    let agents: Vec<&RenderedAgent> = settings.spec.agents.iter().filter(is_wanted).collect();
    ensure!(
        !agents.is_empty(),
        "there is no agent {:?}; there are: {}",
        args.name.as_deref().unwrap_or_default(),
        settings.spec.agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>().join(", ")
    );
    let mut faulty = false;
    for agent in agents {
        let examination = examine(&settings, agent).await;
        faulty |= !examination.faults.is_empty();
        match args.output {
            Output::Text => print_text(agent, &examination)?,
            Output::Json => print_json(agent, &examination)?,
        }
    }
    Ok(if faulty { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print_text(agent: &RenderedAgent, examination: &Examination) -> anyhow::Result<()> {
    let Examination { tools, accepted, faults } = examination;
    if matches!(agent.placement, Placement::Remote { .. }) {
        return print(format_args!("{}: remote, examine it where it runs", agent.name));
    }
    let verdict = if faults.is_empty() { "ok" } else { "faulty" };
    let answered =
        if accepted.is_empty() { String::new() } else { format!(", {} answered", accepted.join(" and ")) };
    print(format_args!("{}: {verdict}, {} tools{answered}", agent.name, tools.len()))?;
    // A fault may contain the output of a tool server.
    faults.iter().try_for_each(|fault| print(format_args!("  - {}", one_line(fault))))
}

fn print_json(agent: &RenderedAgent, examination: &Examination) -> anyhow::Result<()> {
    let Examination { tools, accepted, faults } = examination;
    print(json!({
        "name": agent.name,
        "remote": matches!(agent.placement, Placement::Remote { .. }),
        "tools": tools,
        "accepted": accepted,
        "faults": faults,
    }))
}
