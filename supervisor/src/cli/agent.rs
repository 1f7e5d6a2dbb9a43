//! `agent`: serves one agent alone, for a supervisor that uses it remotely.

use std::net::SocketAddr;
use std::process::ExitCode;

use caipe_a2a::model::AgentCard;

use super::args::Agent;
use super::keys::{keyring, security};
use super::server::{self, ServerConfig};
use crate::agents::AgentRegistry;
use crate::binding::{self, CardSecurity, Presentation};
use crate::config::{SingleAgent, environment_with_data};
use crate::https::https_client;
use crate::remote::displayed_url;

/// The default port of an agent.
const PORT: u16 = 4000;

pub(super) async fn run(args: Agent) -> anyhow::Result<ExitCode> {
    let single = load(&args)?;
    let settings = &single.settings;
    let config = ServerConfig {
        settings,
        port: PORT,
        // A supervisor and other agents may use the same directory; each recovers its own tasks only.
        database: format!("agent-{}.sqlite3", single.agent.name),
        presentation: Presentation::sub_agent(&single.agent.name, &settings.env),
        registry: &|shutdown| Ok(AgentRegistry::start_alone(settings.clone(), https_client()?, shutdown)?),
        cards: &|_, address, security| {
            let card = agent_card(&single, address, security);
            [card.clone(), card]
        },
        // A changed agent gets another pod.
        file: None,
    };
    server::serve(&args.serving, config).await?;
    Ok(ExitCode::SUCCESS)
}

/// `--card`: prints the card of the agent.
pub(super) fn card(args: &Agent) -> anyhow::Result<ExitCode> {
    let single = load(args)?;
    let security = security(&keyring(&single.settings)?);
    let mut card = agent_card(&single, args.serving.address(PORT), &security);
    card.capabilities.push_notifications = args.serving.push.on;
    args.serving.signing.sign([&mut card])?;
    super::card::print(&card)?;
    Ok(ExitCode::SUCCESS)
}

fn load(args: &Agent) -> anyhow::Result<SingleAgent> {
    let env = environment_with_data(&args.serving.data_dir);
    Ok(SingleAgent::load(&args.name, args.file.as_deref(), args.identity.as_deref(), env)?)
}

/// The card. It names the address at which others reach the agent, if it is known.
fn agent_card(single: &SingleAgent, address: SocketAddr, security: &CardSecurity) -> AgentCard {
    let known = single.url.as_ref().and_then(|url| url.parse().ok());
    let url = known.map_or_else(|| super::server::own_url(address), |url| displayed_url(&url));
    binding::agent_card(&single.agent, &single.skills, &url, security)
}
