//! `serve`: serves the supervisor.

use std::net::SocketAddr;
use std::process::ExitCode;

use caipe_a2a::model::AgentCard;

use super::args::Serve;
use super::server::{self, ServerConfig};
use crate::agents::AgentRegistry;
use crate::binding::{self, CardSecurity, Presentation};
use crate::config::{Settings, environment_with_data};
use crate::https::https_client;

/// The default port of the supervisor.
pub(super) const PORT: u16 = 8000;

/// The file of the default store, below the data directory.
const DATABASE: &str = "caipe.sqlite3";

pub(super) async fn run(args: Serve) -> anyhow::Result<ExitCode> {
    let settings = Settings::load(args.file.as_deref(), environment_with_data(&args.serving.data_dir))?;
    let config = ServerConfig {
        settings: &settings,
        port: PORT,
        database: DATABASE.to_owned(),
        presentation: Presentation::supervisor(&settings.env),
        registry: &|shutdown| Ok(AgentRegistry::start(settings.clone(), https_client()?, shutdown)?),
        cards: &cards,
        file: args.file.as_deref(),
    };
    server::serve(&args.serving, config).await?;
    Ok(ExitCode::SUCCESS)
}

fn cards(settings: &Settings, address: SocketAddr, security: &CardSecurity) -> [AgentCard; 2] {
    let spec = &settings.spec;
    let url = spec.supervisor.external_url.clone().unwrap_or_else(|| server::own_url(address));
    let names = spec.agents.iter().map(|agent| agent.name.clone()).collect();
    let card = binding::card(&spec.supervisor, &url, names, security);
    let extended = binding::extended_card(&card, &spec.agents);
    [card, extended]
}
