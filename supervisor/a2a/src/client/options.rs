//! How to talk to an agent.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use secrecy::SecretString;

use super::reconnect::Reconnect;
use crate::card::KeySet;
use crate::version::ProtocolVersion;

/// How to talk to an agent.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// A bearer token for every request.
    pub bearer: Option<SecretString>,
    /// Headers of every request, that for the card among them. Those that the protocol itself sets win.
    pub headers: HeaderMap,
    /// Speak this version or none; otherwise 1.0 if the card offers it, else 0.3.
    pub version: Option<ProtocolVersion>,
    /// Go wherever the card says. Otherwise an address of another origin than the one asked for gives way to
    /// that one: cards of agents behind a proxy name addresses that exist elsewhere only, and a token must
    /// not follow a card to a foreign host.
    pub follow_card_url: bool,
    /// Refuse a card that none of these keys has signed.
    pub card_keys: Option<Arc<KeySet>>,
    /// The URIs of extensions to declare.
    pub extensions: Vec<String>,
    /// How long the card, a look at a task and a cancellation may take.
    pub timeout: Duration,
    /// How long a blocking answer may take.
    pub answer_timeout: Duration,
    /// How long a stream may be silent; keep-alive comments count as signs of life.
    pub idle_timeout: Duration,
    /// Largest answer and largest event of a stream, in bytes.
    pub max_message: usize,
    /// Longest line of a stream, in bytes.
    pub max_line: usize,
    /// Most bytes of one stream in all, comments included; each new connection counts from the start.
    pub max_stream: u64,
    /// When and how a lost connection is taken up again.
    pub reconnect: Reconnect,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            bearer: None,
            headers: HeaderMap::new(),
            version: None,
            follow_card_url: false,
            card_keys: None,
            extensions: Vec::new(),
            timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_mins(10),
            idle_timeout: Duration::from_mins(2),
            max_message: 8 * 1024 * 1024,
            max_line: 8 * 1024 * 1024,
            max_stream: 4 * 1024 * 1024 * 1024,
            reconnect: Reconnect::default(),
        }
    }
}
