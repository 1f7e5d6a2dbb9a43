//! The options of a client.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use secrecy::SecretString;

use super::reconnect::Reconnect;
use crate::card::KeySet;
use crate::version::ProtocolVersion;

#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// A bearer token for every request.
    pub bearer: Option<SecretString>,
    /// Headers of every request, including the one for the card. Headers of the protocol take precedence.
    pub headers: HeaderMap,
    /// Use only this version; otherwise 1.0 if the card offers it, else 0.3.
    pub version: Option<ProtocolVersion>,
    /// Use the card's URL even if it has another origin than the URL of the client. By default the client replaces such a
    /// URL by its own: agents behind a proxy name internal addresses, and a token must not reach a foreign host.
    pub follow_card_url: bool,
    /// Reject a card that none of these keys has signed.
    pub card_keys: Option<Arc<KeySet>>,
    /// The URIs of extensions to declare.
    pub extensions: Vec<String>,
    /// Time limit of a request for the card or a task, and of a cancellation.
    pub timeout: Duration,
    /// Time limit of a blocking response.
    pub answer_timeout: Duration,
    /// How long a stream may be silent; keep-alive comments count as activity.
    pub idle_timeout: Duration,
    /// Largest response and largest event of a stream, in bytes.
    pub max_message: usize,
    /// Longest line of a stream, in bytes.
    pub max_line: usize,
    /// Most bytes of one stream in all, comments included; each new connection counts from the start.
    pub max_stream: u64,
    /// The policy for reconnecting.
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
