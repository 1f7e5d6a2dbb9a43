//! Writes a card as the document that clients of both versions read.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{AgentCard, AgentInterface, SecurityScheme};
use crate::v03;

/// Which document a request for a card gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CardMode {
    /// The merged one; the pure 1.0 one if the request says `A2A-Version: 1.0`.
    #[default]
    Negotiate,
    /// The pure 1.0 one always; clients of 0.3 cannot read it.
    V1,
}

/// The JSON of a card: pure 1.0, or merged with the members of 0.3.
pub fn document(card: &AgentCard, merged: bool) -> Result<Vec<u8>, serde_json::Error> {
    if merged { serde_json::to_vec(&Merged::of(card)) } else { serde_json::to_vec(card) }
}

/// Members of both versions side by side, as the official Python server writes them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Merged<'a> {
    #[serde(flatten)]
    card: AgentCard,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    security_schemes: BTreeMap<&'a str, MergedScheme<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preferred_transport: Option<&'a str>,
    protocol_version: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    additional_interfaces: Vec<v03::Interface>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    security: Vec<BTreeMap<&'a str, &'a [String]>>,
    supports_authenticated_extended_card: bool,
}

#[derive(Serialize)]
struct MergedScheme<'a> {
    #[serde(flatten)]
    v1: &'a SecurityScheme,
    #[serde(flatten)]
    v03: v03::SecurityScheme,
}

impl<'a> Merged<'a> {
    fn of(card: &'a AgentCard) -> Self {
        let old: Vec<&AgentInterface> =
            card.supported_interfaces.iter().filter(|i| i.protocol_version.starts_with("0.")).collect();
        let first = old.first();
        let additional = old.iter().map(|interface| v03::Interface {
            url: interface.url.clone(),
            transport: interface.protocol_binding.clone(),
        });
        let schemes = card.security_schemes.iter().map(|(name, scheme)| {
            (name.as_str(), MergedScheme { v1: scheme, v03: v03::SecurityScheme::from(scheme.clone()) })
        });
        let security = card.security_requirements.iter().map(|requirement| {
            let scopes = requirement.schemes.iter().map(|(name, scopes)| (&**name, &*scopes.list));
            scopes.collect()
        });
        Self {
            // Written by the outer struct.
            card: AgentCard { security_schemes: BTreeMap::new(), ..card.clone() },
            security_schemes: schemes.collect(),
            url: first.map(|interface| interface.url.as_str()),
            preferred_transport: first.map(|interface| interface.protocol_binding.as_str()),
            protocol_version: "0.3.0",
            additional_interfaces: additional.collect(),
            security: security.collect(),
            supports_authenticated_extended_card: card.capabilities.extended_agent_card,
        }
    }
}
