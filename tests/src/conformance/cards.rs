//! The public and the extended agent card.

use caipe_a2a::card::{CardBuilder, CardMode};
use caipe_a2a::model::{AgentCapabilities, AgentCard, AgentInterface, AgentSkill};

use super::Options;

const JSONRPC: &str = "JSONRPC";

/// The public card of the server at `url`, which has no trailing slash.
pub(super) fn public(options: &Options, url: &str) -> AgentCard {
    let skill = skill("conformance", "Conformance", "Does what the first word of a message says");
    let mut builder =
        CardBuilder::new("CAIPE conformance", "Answers conformance suites", url, env!("CARGO_PKG_VERSION"))
            .capabilities(AgentCapabilities {
                streaming: options.capabilities,
                push_notifications: options.capabilities,
                extended_agent_card: options.capabilities,
                ..AgentCapabilities::default()
            })
            .skill(skill);
    if options.users.required {
        builder = builder.bearer("One of the tokens that the server was started with");
    }
    let mut card = builder.build();
    card.supported_interfaces = interfaces(options, url);
    card
}

pub(super) fn extended(public: &AgentCard) -> AgentCard {
    let mut card = public.clone();
    card.description.push_str("; this card is for authenticated callers");
    card.skills.push(skill("extended", "Extended", "A skill for authenticated callers"));
    card
}

/// The 1.0 interfaces come first; clients of 0.3 use the address of the first one.
fn interfaces(options: &Options, url: &str) -> Vec<AgentInterface> {
    let interface = |binding: &str, version: &str| AgentInterface {
        url: url.to_owned(),
        protocol_binding: binding.to_owned(),
        protocol_version: version.to_owned(),
        tenant: None,
    };
    let mut all: Vec<_> = options.bindings.iter().map(|binding| interface(binding, "1.0")).collect();
    let has_jsonrpc = options.bindings.iter().any(|binding| binding == JSONRPC);
    if options.card == CardMode::Negotiate && has_jsonrpc {
        all.push(interface(JSONRPC, "0.3"));
    }
    all
}

fn skill(id: &str, name: &str, description: &str) -> AgentSkill {
    AgentSkill {
        id: id.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        tags: vec!["conformance".to_owned()],
        ..AgentSkill::default()
    }
}
