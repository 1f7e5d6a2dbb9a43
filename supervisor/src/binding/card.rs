//! The supervisor's card (upstream contract 1.1).

use caipe_a2a::card::CardBuilder;
use caipe_a2a::model::{AgentCard, AgentSkill};
use caipe_crds::rendered::SupervisorIdentity;

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
        .skill(skill)
        .extension(ACTIVITY_EXTENSION, about);
    if closed { card.bearer("The shared key of this supervisor").build() } else { card.build() }
}
