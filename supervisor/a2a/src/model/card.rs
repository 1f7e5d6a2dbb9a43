//! Agent cards.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::serde_helpers::{is_false, known_entries, nullable};
use super::{Metadata, SecurityRequirement, SecurityScheme};

/// An agent's description of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    /// A name for people.
    pub name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub description: String,
    /// The interfaces of the agent, the preferred one first.
    #[serde(default, alias = "supported_interfaces", deserialize_with = "nullable")]
    pub supported_interfaces: Vec<AgentInterface>,
    /// The organization that runs the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<AgentProvider>,
    #[serde(default, deserialize_with = "nullable")]
    pub version: String,
    #[serde(default, alias = "documentation_url", skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    /// The optional features of the agent.
    #[serde(default, deserialize_with = "nullable")]
    pub capabilities: AgentCapabilities,
    /// The security schemes, by name.
    #[serde(
        default,
        alias = "security_schemes",
        deserialize_with = "known_entries",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub security_schemes: BTreeMap<String, SecurityScheme>,
    /// The accepted combinations of security schemes; a client satisfies one of them.
    #[serde(
        default,
        alias = "security_requirements",
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub security_requirements: Vec<SecurityRequirement>,
    /// The media types that the agent accepts.
    #[serde(default, alias = "default_input_modes", deserialize_with = "nullable")]
    pub default_input_modes: Vec<String>,
    /// The media types of the agent's responses.
    #[serde(default, alias = "default_output_modes", deserialize_with = "nullable")]
    pub default_output_modes: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub skills: Vec<AgentSkill>,
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<AgentCardSignature>,
    #[serde(default, alias = "icon_url", skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
}

impl AgentCard {
    /// Whether the agent accepts parts of a media type. Without default input modes, it accepts every type. `text`, which
    /// upstream uses, means any text type; `*/*` and `image/*` are ranges.
    pub fn accepts(&self, media_type: &str) -> bool {
        let media_type = media_type.to_ascii_lowercase();
        let kind = media_type.split('/').next().unwrap_or_default();
        let matches = |mode: &String| {
            let mode = mode.trim().to_ascii_lowercase();
            match mode.split_once('/') {
                None => mode == "*" || mode == kind,
                Some(("*", _)) => true,
                Some((range, "*")) => range == kind,
                Some(_) => mode == media_type,
            }
        };
        self.default_input_modes.is_empty() || self.default_input_modes.iter().any(matches)
    }
}

/// A URL of an agent and the protocol that it serves there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInterface {
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON` or a URI.
    #[serde(alias = "protocol_binding")]
    pub protocol_binding: String,
    /// `Major.Minor`.
    #[serde(default, alias = "protocol_version", deserialize_with = "nullable")]
    pub protocol_version: String,
    /// A client that chooses this interface repeats it in every request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

impl AgentInterface {
    /// The name of JSON-RPC 2.0 over HTTP.
    pub const JSONRPC: &'static str = "JSONRPC";

    /// The name of REST.
    pub const HTTP_JSON: &'static str = "HTTP+JSON";

    /// An interface without a tenant.
    pub fn new(url: impl Into<String>, binding: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            protocol_binding: binding.into(),
            protocol_version: version.into(),
            tenant: None,
        }
    }
}

/// The organization that runs an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProvider {
    /// The URL of the organization.
    #[serde(default, deserialize_with = "nullable")]
    pub url: String,
    #[serde(default, deserialize_with = "nullable")]
    pub organization: String,
}

/// The optional features of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentCapabilities {
    /// Whether the agent streams.
    #[serde(deserialize_with = "nullable")]
    pub streaming: bool,
    /// Whether the agent sends push notifications.
    #[serde(alias = "push_notifications", deserialize_with = "nullable")]
    pub push_notifications: bool,
    /// The extensions that the agent supports.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<AgentExtension>,
    /// Whether authenticated clients can request an extended card.
    #[serde(alias = "extended_agent_card", deserialize_with = "nullable", skip_serializing_if = "is_false")]
    pub extended_agent_card: bool,
}

/// An extension that an agent supports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentExtension {
    /// The URI that identifies the extension.
    pub uri: String,
    /// A description of how the agent uses the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether a client must declare it.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "is_false")]
    pub required: bool,
    /// The parameters of the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Metadata>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSkill {
    pub id: String,
    /// A name for people.
    #[serde(default, deserialize_with = "nullable")]
    pub name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub description: String,
    /// Keywords.
    #[serde(default, deserialize_with = "nullable")]
    pub tags: Vec<String>,
    /// Example prompts.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// The media types that the skill accepts, if they differ from the agent's.
    #[serde(
        default,
        alias = "input_modes",
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub input_modes: Vec<String>,
    /// The media types of the skill's responses, if they differ from the agent's.
    #[serde(
        default,
        alias = "output_modes",
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub output_modes: Vec<String>,
    /// The accepted combinations of security schemes, if they differ from the agent's.
    #[serde(
        default,
        alias = "security_requirements",
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub security_requirements: Vec<SecurityRequirement>,
}

impl AgentSkill {
    /// A skill with the required members.
    pub fn new<T: Into<String>>(
        id: impl Into<String>,
        name: impl Into<String>,
        description: impl Into<String>,
        tags: impl IntoIterator<Item = T>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            description: description.into(),
            tags: tags.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

/// A signature of a card: a JSON Web Signature (RFC 7515) without its payload, which is the card itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentCardSignature {
    /// The protected header, base64url.
    pub protected: String,
    /// The signature, base64url.
    pub signature: String,
    /// The unprotected header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Metadata>,
}
