//! The supervisor's card (upstream contract 1.1).

use caipe_a2a::card::CardBuilder;
use caipe_a2a::model::{AgentCard, AgentSkill};
use caipe_crds::rendered::{RenderedAgent, SupervisorIdentity};

use super::ACTIVITY_EXTENSION;

/// The card of a supervisor that answers at `url` and can ask `agents`; `closed` if callers must bring a key.
pub fn card(identity: &SupervisorIdentity, url: &str, agents: Vec<String>, closed: bool) -> AgentCard {
    let skill = AgentSkill {
        id: "ai_platform_engineer".to_owned(),
        name: identity.name.clone(),
        description: identity.description.clone(),
        tags: if agents.is_empty() { vec!["platform-engineering".to_owned()] } else { agents },
        examples: identity.skill_examples.clone(),
        ..AgentSkill::default()
    };
    let about = "The tree of agents and tool calls, as data in the metadata of notifications";
    let card = CardBuilder::new(&identity.name, &identity.description, url, env!("CARGO_PKG_VERSION"))
        .rest()
        .skill(skill)
        .extension(ACTIVITY_EXTENSION, about);
    if !closed {
        return card.build();
    }
    let mut card = card.bearer("The shared key of this supervisor").build();
    card.capabilities.extended_agent_card = true;
    card
}

/// The card for callers who brought the key: every agent is a skill of its own, with what it is for.
pub fn extended_card<'a>(card: &AgentCard, agents: impl IntoIterator<Item = &'a RenderedAgent>) -> AgentCard {
    let skill = |agent: &RenderedAgent| AgentSkill {
        id: agent.name.clone(),
        name: agent.title.clone(),
        description: agent.routing_hint.clone(),
        tags: vec![agent.name.clone()],
        ..AgentSkill::default()
    };
    let mut extended = card.clone();
    extended.skills.extend(agents.into_iter().map(skill));
    extended
}
