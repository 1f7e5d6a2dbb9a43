//! Reads the card of a peer: of 1.0, of 0.3, or merged.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::model::AgentCard;
use crate::v03;

/// A card that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read the agent card: {0}")]
pub struct CardError(String);

/// The member that distinguishes the versions.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Probe {
    #[serde(alias = "supported_interfaces")]
    supported_interfaces: Option<IgnoredAny>,
}

/// Reads a card. A card with `supportedInterfaces` is of 1.0, even if it also has members of 0.3.
pub fn parse(json: &[u8]) -> Result<AgentCard, CardError> {
    let probe: Probe = decode(json)?;
    if probe.supported_interfaces.is_some() {
        decode(json)
    } else {
        let card: Value = decode(json)?;
        if let Some(missing) = ["name", "url"].iter().find(|name| card.get(**name).is_none()) {
            return Err(CardError(format!("missing field `{missing}`")));
        }
        let card = v03::card::to_1_0(card).to_string();
        decode(card.as_bytes())
    }
}

fn decode<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, CardError> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| CardError(error.to_string()))
}
