//! `prompt`: prints the prompt of the supervisor or of an agent, and how many tokens it has.

use std::process::ExitCode;

use anyhow::Context;
use caipe_engine::{Abilities, AgentName, AnswerMode};

use super::args::Prompt;
use crate::agent::whole_prompt;
use crate::builtin::builtin_tools;
use crate::config::{Settings, environment};

/// The estimated bytes of a token.
const TOKEN_BYTES: usize = 4;

pub(super) fn run(args: &Prompt) -> anyhow::Result<ExitCode> {
    let settings = Settings::load(args.file.as_deref(), environment())?;
    let spec = &settings.spec;
    let prompt = whole_prompt(spec, &args.name).with_context(|| {
        let names: Vec<&str> = spec.agents.iter().map(|agent| agent.name.as_str()).collect();
        format!("there is no prompt of `{}`: name supervisor or one of {}", args.name, names.join(", "))
    })?;
    super::print(format_args!("{}", prompt.trim_end()))?;
    let agent = spec.agent(&args.name);
    let all = || spec.agents.iter().map(|agent| agent.name.clone()).collect();
    let agents: Vec<String> = agent.map_or_else(all, |agent| agent.delegates.clone());
    let abilities = Abilities {
        agents: agents.iter().map(|name| AgentName::new(name)).collect(),
        answer: if agent.is_some() { AnswerMode::Plain } else { AnswerMode::Structured },
        forms: true,
        ..Abilities::default()
    };
    let (of_engine, others) = (caipe_engine::builtin_tools(&abilities), builtin_tools());
    let tools: Vec<_> = of_engine.iter().chain(others.iter().map(|tool| &tool.spec)).collect();
    let bytes = tools.iter().map(|tool| serde_json::to_string(tool).unwrap_or_default().len()).sum::<usize>();
    eprintln!(
        "{}: about {} tokens of prompt, and {} tokens of {} built-in tools; the tools of servers come on top",
        args.name,
        prompt.len().div_ceil(TOKEN_BYTES),
        bytes.div_ceil(TOKEN_BYTES),
        tools.len()
    );
    Ok(ExitCode::SUCCESS)
}
