//! `card`: what the supervisor would say of itself.

use std::process::ExitCode;

use super::args::Card;
use crate::binding;
use crate::config::{Settings, environment};

pub(super) fn run(args: &Card) -> anyhow::Result<ExitCode> {
    let settings = Settings::load(args.file.as_deref(), environment())?;
    let names = settings.spec.agents.iter().map(|agent| agent.name.clone()).collect();
    let url = settings.spec.supervisor.external_url.as_deref().unwrap_or(&args.url);
    let card = binding::card(&settings.spec.supervisor, url, names, settings.shared_key().is_some());
    let document: serde_json::Value = serde_json::from_slice(&caipe_a2a::card::document(&card, true)?)?;
    println!("{document:#}");
    Ok(ExitCode::SUCCESS)
}
