//! Chooses an interface of an agent. Pure.

use url::Url;

use super::{ClientError, ClientOptions};
use crate::model::{AgentCard, AgentInterface};
use crate::version::ProtocolVersion;

/// The chosen interface.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) endpoint: Url,
    pub(super) version: ProtocolVersion,
    pub(super) tenant: Option<String>,
}

pub(super) fn base_url(text: &str) -> Result<Url, ClientError> {
    let fault = |reason: String| ClientError::BaseUrl { url: text.to_owned(), reason };
    let url: Url = text.parse().map_err(|error: url::ParseError| fault(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(fault(format!("the scheme must be http or https, not {other}"))),
    }
}

/// Chooses an interface: JSON-RPC, 1.0 before 0.3, then in the card's order.
pub(super) fn choose(card: &AgentCard, base: &Url, options: &ClientOptions) -> Result<Chosen, ClientError> {
    let wanted = |version| options.version.is_none_or(|only| only == version);
    let usable = [ProtocolVersion::V1_0, ProtocolVersion::V0_3]
        .into_iter()
        .filter(|version| wanted(*version))
        .find_map(|version| Some((version, interface(card, version)?)));
    let (version, interface) = usable.ok_or_else(|| no_interface(card, options.version))?;
    let endpoint = endpoint(interface, base, options.follow_card_url)?;
    Ok(Chosen { endpoint, version, tenant: interface.tenant.clone() })
}

fn interface(card: &AgentCard, version: ProtocolVersion) -> Option<&AgentInterface> {
    card.supported_interfaces.iter().find(|interface| {
        let speaks = &*interface.protocol_version;
        let same = !speaks.is_empty() && ProtocolVersion::parse(speaks) == Some(version);
        same && interface.protocol_binding.eq_ignore_ascii_case("JSONRPC")
    })
}

fn endpoint(interface: &AgentInterface, base: &Url, follow: bool) -> Result<Url, ClientError> {
    // A relative address is one of the same origin.
    match base.join(&interface.url) {
        Ok(url) if follow || url.origin() == base.origin() => Ok(url),
        Err(error) if follow => {
            Err(ClientError::BaseUrl { url: interface.url.clone(), reason: error.to_string() })
        }
        Ok(_) | Err(_) => Ok(base.clone()),
    }
}

fn no_interface(card: &AgentCard, only: Option<ProtocolVersion>) -> ClientError {
    let offered = card.supported_interfaces.iter();
    let offered: Vec<_> =
        offered.map(|i| format!("{} of {}", i.protocol_binding, i.protocol_version)).collect();
    ClientError::NoInterface {
        offered: if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") },
        wanted: only.map_or("1.0 or 0.3", ProtocolVersion::as_str),
    }
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
