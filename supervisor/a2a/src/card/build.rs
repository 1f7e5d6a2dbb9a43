//! Builds an agent card.

use crate::model::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill, HttpAuthScheme,
    SecurityRequirement, SecurityScheme,
};

/// Builds the card of an agent that this crate serves: JSON-RPC at one URL, 1.0 first, then 0.3.
#[derive(Debug, Clone)]
pub struct CardBuilder {
    card: AgentCard,
    url: String,
    rest: bool,
}

impl CardBuilder {
    /// Starts with the members that every card has. The media types are text, as in the card of upstream's supervisor.
    pub fn new(name: &str, description: &str, url: &str, version: &str) -> Self {
        let text = || vec!["text".to_owned(), "text/plain".to_owned()];
        Self {
            card: AgentCard {
                name: name.to_owned(),
                description: description.to_owned(),
                version: version.to_owned(),
                capabilities: AgentCapabilities { streaming: true, ..AgentCapabilities::default() },
                default_input_modes: text(),
                default_output_modes: text(),
                ..AgentCard::default()
            },
            url: url.to_owned(),
            rest: false,
        }
    }

    /// Adds REST after JSON-RPC. Both versions have the same URL: clients of 0.3 append `/v1` to it.
    #[must_use]
    pub const fn rest(mut self) -> Self {
        self.rest = true;
        self
    }

    /// Adds an interface after those of this crate.
    #[must_use]
    pub fn interface(mut self, interface: AgentInterface) -> Self {
        self.card.supported_interfaces.push(interface);
        self
    }

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

    /// Announces push notifications.
    #[must_use]
    pub const fn push_notifications(mut self) -> Self {
        self.card.capabilities.push_notifications = true;
        self
    }

    /// Announces the extended card, which authenticated clients can request.
    #[must_use]
    pub const fn extended_card(mut self) -> Self {
        self.card.capabilities.extended_agent_card = true;
        self
    }

    /// Adds an extension that the agent supports and that no client must declare.
    #[must_use]
    pub fn extension(mut self, uri: &str, description: &str) -> Self {
        self.card.capabilities.extensions.push(AgentExtension {
            uri: uri.to_owned(),
            description: Some(description.to_owned()),
            ..AgentExtension::default()
        });
        self
    }

    /// Adds a security scheme; [`requirement`](Self::requirement) makes it necessary.
    #[must_use]
    pub fn scheme(mut self, name: &str, scheme: SecurityScheme) -> Self {
        self.card.security_schemes.insert(name.to_owned(), scheme);
        self
    }

    /// Adds a requirement. A client must satisfy one of them.
    #[must_use]
    pub fn requirement(mut self, requirement: SecurityRequirement) -> Self {
        self.card.security_requirements.push(requirement);
        self
    }

    /// Requires a bearer token.
    #[must_use]
    pub fn bearer(self, description: &str) -> Self {
        let scheme = SecurityScheme::HttpAuthSecurityScheme(HttpAuthScheme {
            description: Some(description.to_owned()),
            scheme: "bearer".to_owned(),
            bearer_format: None,
        });
        let no_scopes: [&str; 0] = [];
        self.scheme("bearer", scheme).requirement(SecurityRequirement::new("bearer", no_scopes))
    }

    /// The card. Its URLs have no trailing slash, because clients append paths to them.
    pub fn build(self) -> AgentCard {
        let Self { mut card, url, rest } = self;
        let bindings: &[&str] = if rest {
            &[AgentInterface::JSONRPC, AgentInterface::HTTP_JSON]
        } else {
            &[AgentInterface::JSONRPC]
        };
        let versions = ["1.0", "0.3"].into_iter();
        let ours = versions
            .flat_map(|version| bindings.iter().map(move |binding| (version, *binding)))
            .map(|(version, binding)| AgentInterface::new(url.clone(), binding, version));
        card.supported_interfaces.splice(0..0, ours);
        for interface in &mut card.supported_interfaces {
            let length = interface.url.trim_end_matches('/').len();
            interface.url.truncate(length);
        }
        card
    }
}
