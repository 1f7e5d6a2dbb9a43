//! A client of A2A agents, in the newest version that both sides support.
//!
//! ```text
//! connect (card -> endpoint, version) -> methods -> rpc -> http
//!                                          |
//!                                        follow (reconnects) -> sse
//!                                          |
//!                                        position (pure: what is new, what is next)
//! ```

mod agent_error;
mod byte_limits;
mod cache;
mod call;
mod cancel;
mod card;
mod connect;
mod error;
mod follow;
mod follow_event;
mod http;
mod methods;
mod options;
mod outage;
mod plain_request;
mod probe;
mod push;
mod reconnect;
mod response;
mod rpc;
pub(crate) mod sse;
mod stream;
mod stream_position;
mod transport;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use url::Url;

pub use agent_error::RemoteError;
pub use cache::CardCache;
pub use call::CallOptions;
pub use cancel::CancelOnDrop;
pub use error::ClientError;
pub use follow_event::{Followed, StreamEvent};
pub use http::http_builder;
pub use options::ClientOptions;
pub use plain_request::Method;
pub use probe::{Probe, probe};
pub use reconnect::Reconnect;
pub use stream::EventStream;

use self::card::{Asked, Known};
use crate::model::AgentCard;
use crate::version::ProtocolVersion;

/// A connection to one agent. Cheap to clone; clones share the card.
#[derive(Debug, Clone)]
pub struct A2aClient {
    inner: Arc<Inner>,
    call: Arc<CallOptions>,
}

#[derive(Debug)]
struct Inner {
    http: reqwest::Client,
    options: ClientOptions,
    base: Url,
    cache: CardCache,
    agreed: RwLock<Arc<Agreed>>,
    next_id: AtomicU64,
}

/// The card and the interface in use.
#[derive(Debug)]
struct Agreed {
    /// The public card.
    known: Arc<Known>,
    /// The extended card, once it was read.
    extended: Option<Arc<AgentCard>>,
    endpoint: Url,
    version: ProtocolVersion,
    tenant: Option<String>,
}

impl Agreed {
    fn choose(known: Arc<Known>, base: &Url, options: &ClientOptions) -> Result<Self, ClientError> {
        card::check_trust(&known.document, options)?;
        let connect::Chosen { endpoint, version, tenant } = connect::choose(&known.card, base, options)?;
        Ok(Self { known, extended: None, endpoint, version, tenant })
    }

    fn card(&self) -> &Arc<AgentCard> {
        self.extended.as_ref().unwrap_or(&self.known.card)
    }
}

impl A2aClient {
    /// Reads the agent's card under `base_url`, at either path and in either version, and chooses an interface.
    /// [`http_builder`] makes a suitable HTTP client.
    ///
    /// # Errors
    /// The failure to read the card, or [`ClientError::NoInterface`] if it has no usable interface.
    pub async fn connect(
        base_url: &str,
        http: reqwest::Client,
        options: ClientOptions,
    ) -> Result<Self, ClientError> {
        Self::connect_with(base_url, http, options, &CardCache::new(0)).await
    }

    /// Connects with a cached card if it is fresh or unchanged.
    ///
    /// # Errors
    /// As those of [`Self::connect`].
    pub async fn connect_with(
        base_url: &str,
        http: reqwest::Client,
        options: ClientOptions,
        cache: &CardCache,
    ) -> Result<Self, ClientError> {
        let base = connect::base_url(base_url)?;
        let call = CallOptions::default();
        let asked = Asked { base: &base, http: &http, options: &options, call: &call };
        let known = cache.card(asked).await?;
        let agreed = RwLock::new(Arc::new(Agreed::choose(known, &base, &options)?));
        let next_id = AtomicU64::new(1);
        let inner = Inner { http, options, base, cache: cache.clone(), agreed, next_id };
        Ok(Self { inner: Arc::new(inner), call: Arc::new(call) })
    }

    /// The same connection for calls with a deadline, headers or extensions of their own.
    #[must_use]
    pub fn with(&self, call: CallOptions) -> Self {
        Self { inner: Arc::clone(&self.inner), call: Arc::new(call) }
    }

    /// The agent's card: the extended one if it was read.
    pub fn card(&self) -> Arc<AgentCard> {
        Arc::clone(self.agreed().card())
    }

    /// The public card's document as it was received, for example to verify its signatures.
    pub fn card_document(&self) -> Bytes {
        self.agreed().known.document.clone()
    }

    /// The version in use.
    pub fn version(&self) -> ProtocolVersion {
        self.agreed().version
    }

    /// The URL of requests.
    pub fn endpoint(&self) -> Url {
        self.agreed().endpoint.clone()
    }

    /// Reads the card again and uses it, in all clones. Returns whether it has changed.
    ///
    /// # Errors
    /// As those of [`Self::connect`]; the client then stays as it is.
    pub async fn refresh(&self) -> Result<bool, ClientError> {
        let before = self.agreed();
        let Inner { base, http, options, cache, .. } = &*self.inner;
        let asked = Asked { base, http, options, call: &self.call };
        let known = cache.ask(asked, Some(&before.known)).await?;
        let changed = known.card != before.known.card;
        let mut agreed = Agreed::choose(known, base, options)?;
        if !changed {
            agreed.extended.clone_from(&before.extended);
        }
        self.agree(agreed);
        if changed && before.extended.is_some() {
            self.extended_card().await?;
        }
        Ok(changed)
    }

    fn agreed(&self) -> Arc<Agreed> {
        Arc::clone(&self.inner.agreed.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn agree(&self, agreed: Agreed) {
        *self.inner.agreed.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(agreed);
    }
}
