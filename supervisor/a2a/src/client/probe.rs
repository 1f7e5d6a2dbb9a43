//! Probes an agent.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::cache::CardCache;
use super::call::CallOptions;
use super::card::{Asked, check_trust};
use super::connect;
use super::error::ClientError;
use super::options::ClientOptions;
use crate::model::AgentCard;
use crate::version::ProtocolVersion;

/// The result of a successful probe.
#[derive(Debug, Clone)]
pub struct Probe {
    pub card: Arc<AgentCard>,
    /// The URL of requests.
    pub endpoint: Url,
    /// The version that a client would use.
    pub version: ProtocolVersion,
    /// The time until the card arrived.
    pub latency: Duration,
    /// Whether the card differs from the cached one, or none was cached.
    pub changed: bool,
}

/// Probes an agent with one request for its card, even if the cached card is fresh. The request is cheap for the agent if
/// the cached card has not changed.
///
/// # Errors
/// As those of [`A2aClient::connect`](super::A2aClient::connect).
pub async fn probe(
    base_url: &str,
    http: &reqwest::Client,
    options: &ClientOptions,
    cache: &CardCache,
) -> Result<Probe, ClientError> {
    let base = connect::base_url(base_url)?;
    let call = CallOptions::default();
    let asked = Asked { base: &base, http, options, call: &call };
    let before = cache.get(asked);
    let start = Instant::now();
    let known = cache.ask(asked, before.as_deref()).await?;
    let latency = start.elapsed();
    check_trust(&known.document, options)?;
    let chosen = connect::choose(&known.card, &base, options)?;
    let changed = before.is_none_or(|before| before.card != known.card);
    let connect::Chosen { endpoint, version, .. } = chosen;
    Ok(Probe { card: Arc::clone(&known.card), endpoint, version, latency, changed })
}
