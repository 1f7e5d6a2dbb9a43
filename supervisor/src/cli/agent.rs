//! `agent`: one agent, served alone, until somebody says stop; what runs where an agent is remote.

use std::net::SocketAddr;
use std::process::ExitCode;

use caipe_a2a::model::AgentCard;

use super::args::Agent;
use super::house::{self, Tenant};
use super::keys::{keyring, locks};
use crate::agents::AgentRegistry;
use crate::binding::{self, Locks, Voice};
use crate::config::{Solo, environment};
use crate::remote::displayed_url;

/// Where an agent listens if nothing else is said.
const PORT: u16 = 4000;

pub(super) async fn run(args: Agent) -> anyhow::Result<ExitCode> {
    let solo = load(&args)?;
    let settings = &solo.settings;
    let tenant = Tenant {
        settings,
        port: PORT,
        // A supervisor, or other agents, may keep theirs beside it; each goes on with its own tasks only.
        database: format!("agent-{}.sqlite3", solo.agent.name),
        voice: Voice::sub_agent(&solo.agent.name, &settings.env),
        registry: &|shutdown| {
            Ok(AgentRegistry::start_alone(settings.clone(), reqwest::Client::new(), shutdown)?)
        },
        cards: &|_, address, locks| {
            let card = agent_card(&solo, address, locks);
            [card.clone(), card]
        },
        // A changed agent gets another pod; this one serves what it was started with.
        file: None,
    };
    house::serve(&args.serving, tenant).await?;
    Ok(ExitCode::SUCCESS)
}

/// `--card`: what the agent would say of itself.
pub(super) fn card(args: &Agent) -> anyhow::Result<ExitCode> {
    let solo = load(args)?;
    let locks = locks(&keyring(&solo.settings)?);
    let mut card = agent_card(&solo, args.serving.address(PORT), &locks);
    card.capabilities.push_notifications = args.serving.push.on;
    args.serving.signing.sign([&mut card])?;
    super::card::print(&card)?;
    Ok(ExitCode::SUCCESS)
}

fn load(args: &Agent) -> anyhow::Result<Solo> {
    Ok(Solo::load(&args.name, args.file.as_deref(), args.identity.as_deref(), environment())?)
}

/// The card; it names the address under which others know the agent, if that was said.
fn agent_card(solo: &Solo, address: SocketAddr, locks: &Locks) -> AgentCard {
    let known = solo.url.as_ref().and_then(|url| url.parse().ok());
    let url = known.map_or_else(|| format!("http://{address}"), |url| displayed_url(&url));
    binding::agent_card(&solo.agent, &solo.skills, &url, locks)
}
