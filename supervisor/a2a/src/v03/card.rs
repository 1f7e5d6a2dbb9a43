//! The members of an agent card that 1.0 does not have, or has in another shape.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{
    AgentCardSignature, AgentExtension, AgentProvider, OAuthFlows, is_false, known_entries, null_is_default,
};

/// What is needed: scopes by the scheme's name.
pub type SecurityNeed = BTreeMap<String, Vec<String>>;

/// What an agent says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    /// A name for people.
    pub name: String,
    /// What it does.
    #[serde(default, deserialize_with = "null_is_default")]
    pub description: String,
    /// Where to reach it.
    pub url: String,
    /// The binding at `url`; absent means `JSONRPC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_transport: Option<String>,
    /// The version of the protocol; cards of 0.2 lack it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub protocol_version: String,
    /// Other ways to reach it.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub additional_interfaces: Vec<Interface>,
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
    pub capabilities: Capabilities,
    /// Ways to authenticate, by name.
    #[serde(default, deserialize_with = "known_entries", skip_serializing_if = "BTreeMap::is_empty")]
    pub security_schemes: BTreeMap<String, SecurityScheme>,
    /// Which of them are needed, with scopes; one entry is enough.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub security: Vec<SecurityNeed>,
    /// Media types that it takes.
    #[serde(default, deserialize_with = "null_is_default")]
    pub default_input_modes: Vec<String>,
    /// Media types that it answers with.
    #[serde(default, deserialize_with = "null_is_default")]
    pub default_output_modes: Vec<String>,
    /// What it can be asked for.
    #[serde(default, deserialize_with = "null_is_default")]
    pub skills: Vec<Skill>,
    /// Whether there is a longer card for those who authenticate.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "is_false")]
    pub supports_authenticated_extended_card: bool,
    /// Signatures of the card.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<AgentCardSignature>,
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
    /// Whether tasks tell how their states changed. 1.0 does not know it.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "is_false")]
    pub state_transition_history: bool,
    /// Extensions.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<AgentExtension>,
}

/// Something that an agent can be asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
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
    pub security: Vec<SecurityNeed>,
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
        /// The flows.
        #[serde(default, deserialize_with = "null_is_default")]
        flows: Box<OAuthFlows>,
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
