//! The state that the handlers share, and the options of the server.

use std::sync::Arc;
use std::time::Duration;

use super::agent::Agent;
use super::body::BodyReader;
use super::cards::Cards;
use super::push::Pushes;
use crate::card::CardMode;
use crate::error::A2aError;

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "switches that are set independently of each other")]
pub struct ServerOptions {
    /// The largest request body in bytes.
    pub body_limit: usize,
    /// The bytes of all request bodies that are read or decoded at a time; the first 16 KiB of each do not count.
    pub total_body_limit: usize,
    /// How long a request body may take to arrive.
    pub body_timeout: Duration,
    /// The time without an event after which a stream sends a keep-alive comment.
    pub keep_alive: Duration,
    /// Whether to reject requests of 0.3 without `jsonrpc` and `kind`, which CAIPE's clients omit.
    pub strict_v0_3: bool,
    /// Whether to accept methods of 1.0 without an `A2A-Version` header.
    pub lenient_version: bool,
    /// Whether to accept messages of 1.0 without a `messageId`, and with `taskId` and `contextId` beside the
    /// message instead of in it.
    pub lenient_messages: bool,
    /// Whether to reject parts of a media type that is not among the card's default input modes.
    pub strict_input_modes: bool,
    /// Which card to serve.
    pub card: CardMode,
    /// How long a client may cache the card.
    pub card_max_age: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            body_limit: 10 * 1024 * 1024,
            total_body_limit: 64 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            strict_v0_3: false,
            lenient_version: false,
            lenient_messages: false,
            strict_input_modes: false,
            card: CardMode::Negotiate,
            card_max_age: Duration::from_mins(1),
        }
    }
}

pub(super) struct Server {
    pub(super) agent: Arc<dyn Agent>,
    pub(super) options: ServerOptions,
    pub(super) cards: Cards,
    pub(super) body_reader: BodyReader,
}

impl Server {
    pub(super) fn new(agent: Arc<dyn Agent>, options: ServerOptions) -> Self {
        let body_reader = BodyReader::new(options.body_limit, options.body_timeout, options.total_body_limit);
        Self { agent, options, cards: Cards::default(), body_reader }
    }

    /// The push configurations; an error if the card does not announce push notifications or the agent has none.
    pub(super) fn pushes(&self) -> Result<Arc<Pushes>, A2aError> {
        let announced = self.agent.card().capabilities.push_notifications;
        announced.then(|| self.agent.pushes()).flatten().ok_or(A2aError::PushNotificationNotSupported)
    }
}
