//! The members of an agent card that 1.0 does not have, or has in another shape.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{
    self, AgentExtension, AgentProvider, AgentSkill, Metadata, is_false, known_entries, null_is_default,
};

/// What an agent says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    /// A name for people.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// Where to reach it.
    pub url: String,
    /// The binding at `url`; absent means `JSONRPC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_transport: Option<String>,
    /// The version of the protocol; cards of 0.2 lack it.
    #[serde(default)]
    pub protocol_version: String,
    /// Other ways to reach it.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub additional_interfaces: Vec<Interface>,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<AgentProvider>,
    /// The agent's own version.
    #[serde(default)]
    pub version: String,
    /// Where to read more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    /// What it offers beyond the basics.
    #[serde(default, deserialize_with = "null_is_default")]
    pub capabilities: Capabilities,
    /// Ways to authenticate, by name.
    #[serde(default, deserialize_with = "known_entries", skip_serializing_if = "BTreeMap::is_empty")]
    pub security_schemes: BTreeMap<String, SecurityScheme>,
    /// Which of them are needed, with scopes; one entry is enough.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub security: Vec<BTreeMap<String, Vec<String>>>,
    /// Media types that it takes.
    #[serde(default, deserialize_with = "null_is_default")]
    pub default_input_modes: Vec<String>,
    /// Media types that it answers with.
    #[serde(default, deserialize_with = "null_is_default")]
    pub default_output_modes: Vec<String>,
    /// What it can be asked for.
    #[serde(default, deserialize_with = "null_is_default")]
    pub skills: Vec<AgentSkill>,
    /// Whether there is a longer card for those who authenticate.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "is_false")]
    pub supports_authenticated_extended_card: bool,
    /// A picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
}

/// One way to reach an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// The address.
    pub url: String,
    /// `JSONRPC`, `GRPC` or `HTTP+JSON`.
    pub transport: String,
}

/// What an agent offers beyond the basics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Streams.
    #[serde(default, deserialize_with = "null_is_default")]
    pub streaming: bool,
    /// Push notifications.
    #[serde(default, deserialize_with = "null_is_default")]
    pub push_notifications: bool,
    /// Extensions.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<AgentExtension>,
}

/// One way to authenticate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum SecurityScheme {
    /// A key in a header, a query or a cookie.
    ApiKey {
        /// Where it goes.
        #[serde(rename = "in")]
        location: String,
        /// The name of the header, parameter or cookie.
        name: String,
        /// What it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// A scheme of the `Authorization` header.
    Http {
        /// For example `bearer`.
        scheme: String,
        /// For example `JWT`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bearer_format: Option<String>,
        /// What it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// OAuth 2.
    Oauth2 {
        /// The flows, as in `OpenAPI`.
        flows: Value,
        /// Where the server's metadata is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        oauth2_metadata_url: Option<String>,
        /// What it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// `OpenID` Connect.
    OpenIdConnect {
        /// The discovery document.
        open_id_connect_url: String,
        /// What it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// A client certificate.
    #[serde(rename = "mutualTLS")]
    MutualTls {
        /// What it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
}

impl From<AgentCard> for model::AgentCard {
    fn from(card: AgentCard) -> Self {
        let first = model::AgentInterface {
            url: card.url,
            protocol_binding: card.preferred_transport.unwrap_or_else(|| "JSONRPC".to_owned()),
            protocol_version: "0.3".to_owned(),
            tenant: None,
        };
        let others = card.additional_interfaces.into_iter().map(|interface| model::AgentInterface {
            url: interface.url,
            protocol_binding: interface.transport,
            protocol_version: "0.3".to_owned(),
            tenant: None,
        });
        let mut supported_interfaces = vec![first];
        for other in others {
            if !supported_interfaces.contains(&other) {
                supported_interfaces.push(other);
            }
        }
        Self {
            name: card.name,
            description: card.description,
            supported_interfaces,
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
            skills: card.skills,
            signatures: Vec::new(),
            icon_url: card.icon_url,
        }
    }
}

fn requirement(schemes: BTreeMap<String, Vec<String>>) -> model::SecurityRequirement {
    let schemes = schemes.into_iter().map(|(name, list)| (name, model::StringList { list }));
    model::SecurityRequirement { schemes: schemes.collect() }
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
                flows: without_device_code(s.flows),
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

/// 0.3 does not know the device code flow.
fn without_device_code(mut flows: Value) -> Value {
    if let Some(flows) = flows.as_object_mut() {
        Metadata::remove(flows, "deviceCode");
    }
    flows
}
