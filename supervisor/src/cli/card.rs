//! `card`: prints the agent card.

use std::process::ExitCode;

use anyhow::Context;
use caipe_a2a::model::AgentCard;

use super::args::Card;
use super::keys::{keyring, security};
use crate::binding;
use crate::config::{Settings, environment};

pub(super) fn run(args: &Card) -> anyhow::Result<ExitCode> {
    if args.keys {
        let signer =
            args.signing.signer()?.context("failed to print the public key: give --card-signing-key")?;
        super::print(format_args!("{:#}", serde_json::to_value(signer.key_set()?)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let settings = Settings::load(args.file.as_deref(), environment())?;
    let names = settings.spec.agents.iter().map(|agent| agent.name.clone()).collect();
    let url = settings.spec.supervisor.external_url.as_deref().unwrap_or(&args.url);
    let security = security(&keyring(&settings)?);
    let mut card = binding::card(&settings.spec.supervisor, url, names, &security);
    card.capabilities.push_notifications = args.push.on;
    args.signing.sign([&mut card])?;
    print(&card)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a card as it is served to clients of both versions.
pub(super) fn print(card: &AgentCard) -> anyhow::Result<()> {
    let document: serde_json::Value = serde_json::from_slice(&caipe_a2a::card::document(card, true)?)?;
    super::print(format_args!("{document:#}"))
}
