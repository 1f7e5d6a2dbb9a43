//! The cards of a supervisor (upstream contract 1.1) and of an agent that is served alone.

use caipe_a2a::card::CardBuilder;
use caipe_a2a::model::{AgentCard, AgentSkill};
use caipe_crds::identity::Skill;
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
    let card = begin(&identity.name, &identity.description, url).skill(skill);
    finish(card, closed, "The shared key of this supervisor")
}

/// The card of one agent that answers at `url` (`harness-spec` A1, A5): it is called what delegations call it. Without
/// skills of its own it has one, everything that it does; `closed` if callers must bring a key.
pub fn agent_card(agent: &RenderedAgent, skills: &[Skill], url: &str, closed: bool) -> AgentCard {
    let mut card = begin(&agent.name, &agent.description, url);
    for skill in skills {
        card = card.skill(skill_of(agent, &skill.id, &skill.name, &skill.description));
    }
    if skills.is_empty() {
        card = card.skill(skill_of(agent, &agent.name, &agent.title, &agent.routing_hint));
    }
    let mut card = finish(card, closed, "The shared key of this agent");
    let text = || vec!["text/plain".to_owned()];
    (card.default_input_modes, card.default_output_modes) = (text(), text());
    card
}

/// What all cards of this program have in common.
fn begin(name: &str, description: &str, url: &str) -> CardBuilder {
    let about = "The tree of agents and tool calls, as data in the metadata of notifications";
    CardBuilder::new(name, description, url, env!("CARGO_PKG_VERSION"))
        .rest()
        .extension(ACTIVITY_EXTENSION, about)
}

fn finish(card: CardBuilder, closed: bool, key: &str) -> AgentCard {
    if !closed {
        return card.build();
    }
    let mut card = card.bearer(key).build();
    card.capabilities.extended_agent_card = true;
    card
}

fn skill_of(agent: &RenderedAgent, id: &str, name: &str, description: &str) -> AgentSkill {
    AgentSkill {
        id: id.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        tags: vec![agent.name.clone()],
        ..AgentSkill::default()
    }
}

/// The card for callers who brought the key: every agent is a skill of its own, with what it is for.
pub fn extended_card<'a>(card: &AgentCard, agents: impl IntoIterator<Item = &'a RenderedAgent>) -> AgentCard {
    let skill = |agent: &RenderedAgent| skill_of(agent, &agent.name, &agent.title, &agent.routing_hint);
    let mut extended = card.clone();
    extended.skills.extend(agents.into_iter().map(skill));
    extended
}
