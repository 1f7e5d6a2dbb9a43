//! The cards of a supervisor and of an agent that is served alone.

use caipe_a2a::card::CardBuilder;
use caipe_a2a::model::{AgentCard, AgentSkill, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use caipe_crds::identity::Skill;
use caipe_crds::rendered::{RenderedAgent, SupervisorIdentity};

use super::ACTIVITY_EXTENSION;

/// The credentials that a card asks for: callers need one of these, if any is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CardSecurity {
    /// A key that all callers share.
    pub shared_key: bool,
    /// A token of this issuer.
    pub issuer: Option<String>,
}

impl CardSecurity {
    /// Whether callers need a credential.
    pub fn requires_credential(&self) -> bool {
        self.shared_key || self.issuer.is_some()
    }
}

/// The card of a supervisor that answers at `url` with these security schemes and can ask `agents`.
pub fn card(
    identity: &SupervisorIdentity,
    url: &str,
    agents: Vec<String>,
    security: &CardSecurity,
) -> AgentCard {
    let skill = AgentSkill {
        id: "ai_platform_engineer".to_owned(),
        name: identity.name.clone(),
        description: identity.description.clone(),
        tags: if agents.is_empty() { vec!["platform-engineering".to_owned()] } else { agents },
        examples: examples(&identity.skill_examples),
        ..AgentSkill::default()
    };
    let card = begin(&identity.name, &identity.description, url).skill(skill);
    finish(card, security, "The shared key of this supervisor")
}

/// The card of one agent that answers at `url` with these security schemes, under the name that delegations use. An agent without
/// skills gets one skill for everything that it does.
pub fn agent_card(agent: &RenderedAgent, skills: &[Skill], url: &str, security: &CardSecurity) -> AgentCard {
    let mut card = begin(&agent.name, &agent.description, url);
    for skill in skills {
        card = card.skill(skill_of(agent, &skill.id, &skill.name, &skill.description));
    }
    if skills.is_empty() {
        card = card.skill(skill_of(agent, &agent.name, &agent.title, &agent.routing_hint));
    }
    let mut card = finish(card, security, "The shared key of this agent");
    let text = || vec!["text/plain".to_owned()];
    (card.default_input_modes, card.default_output_modes) = (text(), text());
    card
}

/// The common part of all cards of this program.
fn begin(name: &str, description: &str, url: &str) -> CardBuilder {
    let about = "The tree of agents and tool calls, as data in the metadata of notifications";
    CardBuilder::new(name, description, url, env!("CARGO_PKG_VERSION"))
        .rest()
        .extension(ACTIVITY_EXTENSION, about)
}

fn finish(mut card: CardBuilder, security: &CardSecurity, key: &str) -> AgentCard {
    if security.shared_key {
        card = card.bearer(key);
    }
    if let Some(issuer) = &security.issuer {
        let scheme = HttpAuthScheme {
            description: Some(format!("A token of {issuer}")),
            scheme: "bearer".to_owned(),
            bearer_format: Some("JWT".to_owned()),
        };
        let no_scopes: [&str; 0] = [];
        card = card
            .scheme("token", SecurityScheme::HttpAuthSecurityScheme(scheme))
            .requirement(SecurityRequirement::new("token", no_scopes));
    }
    let mut card = card.build();
    card.capabilities.extended_agent_card = security.requires_credential();
    card
}

fn skill_of(agent: &RenderedAgent, id: &str, name: &str, description: &str) -> AgentSkill {
    AgentSkill {
        id: id.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        tags: vec![agent.name.clone()],
        examples: examples(&[]),
        ..AgentSkill::default()
    }
}

/// Examples of requests. Every skill has some, because clients expect a list that is not empty.
fn examples(given: &[String]) -> Vec<String> {
    if given.is_empty() { vec!["What can you do?".to_owned()] } else { given.to_vec() }
}

/// The card for authenticated callers: every agent is a skill of its own.
pub fn extended_card<'a>(card: &AgentCard, agents: impl IntoIterator<Item = &'a RenderedAgent>) -> AgentCard {
    let skill = |agent: &RenderedAgent| skill_of(agent, &agent.name, &agent.title, &agent.routing_hint);
    let mut extended = card.clone();
    extended.skills.extend(agents.into_iter().map(skill));
    extended
}
