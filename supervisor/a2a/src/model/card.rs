//! What an agent says of itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::serde_helpers::{is_false, known_entries, null_is_default};
use super::{Metadata, SecurityRequirement, SecurityScheme};

/// What an agent says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    /// A name for people.
    pub name: String,
    /// What it does.
    #[serde(default, deserialize_with = "null_is_default")]
    pub description: String,
    /// Where and how to reach it, the preferred way first.
    #[serde(default, deserialize_with = "null_is_default")]
    pub supported_interfaces: Vec<AgentInterface>,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<AgentProvider>,
    /// The agent's own version.
    #[serde(default, deserialize_with = "null_is_default")]
    pub version: String,
    /// Where to read more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation_url: Option<String>,
    /// What it offers beyond the basics.
    #[serde(default, deserialize_with = "null_is_default")]
    pub capabilities: AgentCapabilities,
    /// Ways to authenticate, by name.
    #[serde(default, deserialize_with = "known_entries", skip_serializing_if = "BTreeMap::is_empty")]
    pub security_schemes: BTreeMap<String, SecurityScheme>,
    /// Which of them are needed; one entry is enough.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub security_requirements: Vec<SecurityRequirement>,
    /// Media types that it takes.
    #[serde(default, deserialize_with = "null_is_default")]
    pub default_input_modes: Vec<String>,
    /// Media types that it answers with.
    #[serde(default, deserialize_with = "null_is_default")]
    pub default_output_modes: Vec<String>,
    /// What it can be asked for.
    #[serde(default, deserialize_with = "null_is_default")]
    pub skills: Vec<AgentSkill>,
    /// Signatures of the card.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<AgentCardSignature>,
    /// A picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon_url: Option<String>,
}

/// One way to reach an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInterface {
    /// The address.
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON` or a URI.
    pub protocol_binding: String,
    /// `Major.Minor`.
    #[serde(default, deserialize_with = "null_is_default")]
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

    /// One way to reach an agent.
    pub fn new(url: impl Into<String>, binding: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            protocol_binding: binding.into(),
            protocol_version: version.into(),
            tenant: None,
        }
    }
}

/// Who runs an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProvider {
    /// Their page.
    #[serde(default, deserialize_with = "null_is_default")]
    pub url: String,
    /// Their name.
    #[serde(default, deserialize_with = "null_is_default")]
    pub organization: String,
}

/// What an agent offers beyond the basics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCapabilities {
    /// Streams.
    #[serde(default, deserialize_with = "null_is_default")]
    pub streaming: bool,
    /// Push notifications.
    #[serde(default, deserialize_with = "null_is_default")]
    pub push_notifications: bool,
    /// Extensions.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<AgentExtension>,
    /// A longer card for those who authenticate.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "is_false")]
    pub extended_agent_card: bool,
}

/// An extension that an agent speaks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentExtension {
    /// Its name.
    pub uri: String,
    /// How the agent uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether a client must declare it.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "is_false")]
    pub required: bool,
    /// Its parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Metadata>,
}

/// Something that an agent can be asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSkill {
    /// Its id.
    pub id: String,
    /// A name for people.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
    /// What it does.
    #[serde(default, deserialize_with = "null_is_default")]
    pub description: String,
    /// Words to find it by.
    #[serde(default, deserialize_with = "null_is_default")]
    pub tags: Vec<String>,
    /// Things to ask.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// Media types that it takes, if not the agent's.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub input_modes: Vec<String>,
    /// Media types that it answers with, if not the agent's.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub output_modes: Vec<String>,
    /// What is needed to use it, if not what the agent needs; one entry is enough.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub security_requirements: Vec<SecurityRequirement>,
}

impl AgentSkill {
    /// A skill with what every skill must have.
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
