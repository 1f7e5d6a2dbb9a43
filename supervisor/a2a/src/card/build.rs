//! Makes a card.

use std::collections::BTreeMap;

use crate::model::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill, HttpAuthScheme,
    SecurityRequirement, SecurityScheme, StringList,
};

/// Makes the card of an agent that this crate serves: JSON-RPC at one URL, 1.0 first, then 0.3.
#[derive(Debug, Clone)]
pub struct CardBuilder {
    card: AgentCard,
}

impl CardBuilder {
    /// Begins with what every card has. Media types are text, as upstream's supervisor says them.
    pub fn new(name: &str, description: &str, url: &str, version: &str) -> Self {
        let interface = |protocol_version: &str| AgentInterface {
            url: url.to_owned(),
            protocol_binding: "JSONRPC".to_owned(),
            protocol_version: protocol_version.to_owned(),
            tenant: None,
        };
        let text = || vec!["text".to_owned(), "text/plain".to_owned()];
        Self {
            card: AgentCard {
                name: name.to_owned(),
                description: description.to_owned(),
                supported_interfaces: vec![interface("1.0"), interface("0.3")],
                version: version.to_owned(),
                capabilities: AgentCapabilities { streaming: true, ..AgentCapabilities::default() },
                default_input_modes: text(),
                default_output_modes: text(),
                ..AgentCard::default()
            },
        }
    }

    /// Adds a skill.
    #[must_use]
    pub fn skill(mut self, skill: AgentSkill) -> Self {
        self.card.skills.push(skill);
        self
    }

    /// Replaces the capabilities; the default is streaming alone.
    #[must_use]
    pub fn capabilities(mut self, capabilities: AgentCapabilities) -> Self {
        self.card.capabilities = capabilities;
        self
    }

    /// Adds an extension that the agent speaks and that no client must declare.
    #[must_use]
    pub fn extension(mut self, uri: &str, description: &str) -> Self {
        self.card.capabilities.extensions.push(AgentExtension {
            uri: uri.to_owned(),
            description: Some(description.to_owned()),
            ..AgentExtension::default()
        });
        self
    }

    /// Says that a bearer token is needed.
    #[must_use]
    pub fn bearer(mut self, description: &str) -> Self {
        let scheme = SecurityScheme::HttpAuthSecurityScheme(HttpAuthScheme {
            description: Some(description.to_owned()),
            scheme: "bearer".to_owned(),
            bearer_format: None,
        });
        self.card.security_schemes.insert("bearer".to_owned(), scheme);
        let schemes = BTreeMap::from([("bearer".to_owned(), StringList::default())]);
        self.card.security_requirements.push(SecurityRequirement { schemes });
        self
    }

    /// The card.
    pub fn build(self) -> AgentCard {
        self.card
    }
}
