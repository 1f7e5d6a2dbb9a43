//! Cards to and from the canonical model.
//!
//! What 0.3 cannot say is left out: tenants, interfaces of 1.0, the device code flow, `pkceRequired`. What 1.0
//! cannot say is lost as well: `stateTransitionHistory`, and the patch of `protocolVersion`.

use super::card::{AgentCard, Capabilities, Interface, SecurityNeed, SecurityScheme, Skill};
use crate::model::{self, AgentInterface};

/// What 0.3 has at the top of its cards.
const PROTOCOL_VERSION: &str = "0.3.0";

impl From<AgentCard> for model::AgentCard {
    fn from(card: AgentCard) -> Self {
        Self {
            supported_interfaces: interfaces(&card),
            name: card.name,
            description: card.description,
            provider: card.provider,
            version: card.version,
            documentation_url: card.documentation_url,
            capabilities: model::AgentCapabilities {
                streaming: card.capabilities.streaming,
                push_notifications: card.capabilities.push_notifications,
                extensions: card.capabilities.extensions,
                extended_agent_card: card.supports_authenticated_extended_card,
            },
            security_schemes: card.security_schemes.into_iter().map(|(k, v)| (k, v.into())).collect(),
            security_requirements: card.security.into_iter().map(requirement).collect(),
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills: card.skills.into_iter().map(Into::into).collect(),
            signatures: card.signatures,
            icon_url: card.icon_url,
        }
    }
}

/// The preferred one first, each once: `additionalInterfaces` may repeat it.
fn interfaces(card: &AgentCard) -> Vec<AgentInterface> {
    let interface = |url: &str, binding: &str| AgentInterface::new(url, binding, "0.3");
    let preferred = card.preferred_transport.as_deref().unwrap_or(AgentInterface::JSONRPC);
    let mut all = vec![interface(&card.url, preferred)];
    for other in &card.additional_interfaces {
        let other = interface(&other.url, &other.transport);
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

impl From<model::AgentCard> for AgentCard {
    /// A card without any interface of 0.3 names its first one, of whichever version.
    fn from(card: model::AgentCard) -> Self {
        let is_old = |interface: &&AgentInterface| interface.protocol_version.starts_with("0.");
        let old: Vec<_> = card.supported_interfaces.iter().filter(is_old).collect();
        let main = old.first().copied().or_else(|| card.supported_interfaces.first());
        let additional = old.iter().map(|interface| Interface {
            url: interface.url.clone(),
            transport: interface.protocol_binding.clone(),
        });
        Self {
            url: main.map(|interface| interface.url.clone()).unwrap_or_default(),
            preferred_transport: main.map(|interface| interface.protocol_binding.clone()),
            protocol_version: PROTOCOL_VERSION.to_owned(),
            additional_interfaces: additional.collect(),
            name: card.name,
            description: card.description,
            provider: card.provider,
            version: card.version,
            documentation_url: card.documentation_url,
            capabilities: Capabilities {
                streaming: card.capabilities.streaming,
                push_notifications: card.capabilities.push_notifications,
                state_transition_history: false,
                extensions: card.capabilities.extensions,
            },
            security_schemes: card.security_schemes.into_iter().map(|(k, v)| (k, v.into())).collect(),
            security: card.security_requirements.into_iter().map(need).collect(),
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills: card.skills.into_iter().map(Into::into).collect(),
            supports_authenticated_extended_card: card.capabilities.extended_agent_card,
            signatures: card.signatures,
            icon_url: card.icon_url,
        }
    }
}

impl From<Skill> for model::AgentSkill {
    fn from(skill: Skill) -> Self {
        Self {
            id: skill.id,
            name: skill.name,
            description: skill.description,
            tags: skill.tags,
            examples: skill.examples,
            input_modes: skill.input_modes,
            output_modes: skill.output_modes,
            security_requirements: skill.security.into_iter().map(requirement).collect(),
        }
    }
}

impl From<model::AgentSkill> for Skill {
    fn from(skill: model::AgentSkill) -> Self {
        Self {
            id: skill.id,
            name: skill.name,
            description: skill.description,
            tags: skill.tags,
            examples: skill.examples,
            input_modes: skill.input_modes,
            output_modes: skill.output_modes,
            security: skill.security_requirements.into_iter().map(need).collect(),
        }
    }
}

fn requirement(need: SecurityNeed) -> model::SecurityRequirement {
    let schemes = need.into_iter().map(|(name, list)| (name, model::StringList { list }));
    model::SecurityRequirement { schemes: schemes.collect() }
}

fn need(requirement: model::SecurityRequirement) -> SecurityNeed {
    requirement.schemes.into_iter().map(|(name, scopes)| (name, scopes.list)).collect()
}

impl From<SecurityScheme> for model::SecurityScheme {
    fn from(scheme: SecurityScheme) -> Self {
        match scheme {
            SecurityScheme::ApiKey { location, name, description } => {
                Self::ApiKeySecurityScheme(model::ApiKeyScheme { description, location, name })
            }
            SecurityScheme::Http { scheme, bearer_format, description } => {
                Self::HttpAuthSecurityScheme(model::HttpAuthScheme { description, scheme, bearer_format })
            }
            SecurityScheme::Oauth2 { flows, oauth2_metadata_url, description } => {
                Self::Oauth2SecurityScheme(model::OAuth2Scheme { description, flows, oauth2_metadata_url })
            }
            SecurityScheme::OpenIdConnect { open_id_connect_url, description } => {
                Self::OpenIdConnectSecurityScheme(model::OpenIdConnectScheme {
                    description,
                    open_id_connect_url,
                })
            }
            SecurityScheme::MutualTls { description } => {
                Self::MtlsSecurityScheme(model::MtlsScheme { description })
            }
        }
    }
}

impl From<model::SecurityScheme> for SecurityScheme {
    fn from(scheme: model::SecurityScheme) -> Self {
        match scheme {
            model::SecurityScheme::ApiKeySecurityScheme(s) => {
                Self::ApiKey { location: s.location, name: s.name, description: s.description }
            }
            model::SecurityScheme::HttpAuthSecurityScheme(s) => {
                Self::Http { scheme: s.scheme, bearer_format: s.bearer_format, description: s.description }
            }
            model::SecurityScheme::Oauth2SecurityScheme(s) => Self::Oauth2 {
                flows: Box::new(without_new(*s.flows)),
                oauth2_metadata_url: s.oauth2_metadata_url,
                description: s.description,
            },
            model::SecurityScheme::OpenIdConnectSecurityScheme(s) => {
                Self::OpenIdConnect { open_id_connect_url: s.open_id_connect_url, description: s.description }
            }
            model::SecurityScheme::MtlsSecurityScheme(s) => Self::MutualTls { description: s.description },
        }
    }
}

fn without_new(flows: model::OAuthFlows) -> model::OAuthFlows {
    let without_pkce = |flow| model::OAuthFlow { pkce_required: false, ..flow };
    model::OAuthFlows {
        authorization_code: flows.authorization_code.map(without_pkce),
        device_code: None,
        ..flows
    }
}
