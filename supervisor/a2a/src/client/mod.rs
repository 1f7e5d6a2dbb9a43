//! Talks to other people's agents, in the newest version that both sides speak.

mod connect;
mod error;
mod rpc;
pub(crate) mod sse;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures::stream::BoxStream;
use secrecy::SecretString;
use url::Url;

pub use error::{ClientError, RemoteError};

use crate::model::{
    AgentCard, CancelTaskRequest, Event, GetTaskRequest, Reply, SendMessageRequest, SubscribeToTaskRequest,
    Task,
};
use crate::v03;
use crate::version::ProtocolVersion;

/// How to talk to an agent.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// A bearer token for every request.
    pub bearer: Option<SecretString>,
    /// Speak this version or none; otherwise 1.0 if the card offers it, else 0.3.
    pub version: Option<ProtocolVersion>,
    /// Go wherever the card says. Otherwise an address of another origin than the one asked for gives way to
    /// that one: cards of agents behind a proxy name addresses that exist elsewhere only, and a token must
    /// not follow a card to a foreign host.
    pub follow_card_url: bool,
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
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            bearer: None,
            version: None,
            follow_card_url: false,
            extensions: Vec::new(),
            timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_mins(10),
            idle_timeout: Duration::from_mins(2),
            max_message: 8 * 1024 * 1024,
        }
    }
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// Its number, if the server numbers its events: what to name when subscribing again.
    pub seq: Option<u64>,
    /// The event.
    pub event: Event,
}

/// The events of a stream, up to the end of the task, its wait for the client, or the first failure.
/// Dropping it hangs up; the task goes on.
pub type EventStream = BoxStream<'static, Result<StreamEvent, ClientError>>;

/// A connection to one agent. Cheap to clone.
#[derive(Debug, Clone)]
pub struct A2aClient {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    http: reqwest::Client,
    options: ClientOptions,
    card: AgentCard,
    endpoint: Url,
    version: ProtocolVersion,
    tenant: Option<String>,
    next_id: AtomicU64,
}

impl A2aClient {
    /// Reads the agent's card under `base_url`, at either path and in either shape, and chooses how to talk.
    ///
    /// # Errors
    /// What kept the card from being read, or [`ClientError::NoInterface`] if nothing in it can be used.
    pub async fn connect(
        base_url: &str,
        http: reqwest::Client,
        options: ClientOptions,
    ) -> Result<Self, ClientError> {
        let base = connect::base_url(base_url)?;
        let card = connect::fetch_card(&base, &http, &options).await?;
        let chosen = connect::choose(&card, &base, &options)?;
        let connect::Chosen { endpoint, version, tenant } = chosen;
        let next_id = AtomicU64::new(1);
        let inner = Inner { http, options, card, endpoint, version, tenant, next_id };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The agent's card.
    pub fn card(&self) -> &AgentCard {
        &self.inner.card
    }

    /// The version that is spoken.
    pub fn version(&self) -> ProtocolVersion {
        self.inner.version
    }

    /// Where requests go.
    pub fn endpoint(&self) -> &Url {
        &self.inner.endpoint
    }

    /// Sends a message and waits for the answer: unless `return_immediately` is set, until the task ends or
    /// waits for the client.
    pub async fn send(&self, mut request: SendMessageRequest) -> Result<Reply, ClientError> {
        let deadline = self.inner.options.answer_timeout;
        match self.inner.version {
            ProtocolVersion::V1_0 => {
                self.tenant(&mut request.tenant);
                self.call("SendMessage", &request, deadline).await
            }
            ProtocolVersion::V0_3 => {
                let params = v03::SendParams::from(request);
                match self.call::<v03::Event>("message/send", &params, deadline).await?.into() {
                    Event::Task(task) => Ok(Reply::Task(task)),
                    Event::Message(message) => Ok(Reply::Message(message)),
                    _ => Err(ClientError::Protocol("the answer is neither a task nor a message".to_owned())),
                }
            }
        }
    }

    /// Sends a message and follows the task.
    pub async fn stream(&self, mut request: SendMessageRequest) -> Result<EventStream, ClientError> {
        match self.inner.version {
            ProtocolVersion::V1_0 => {
                self.tenant(&mut request.tenant);
                self.open("SendStreamingMessage", &request, None).await
            }
            ProtocolVersion::V0_3 => self.open("message/stream", &v03::SendParams::from(request), None).await,
        }
    }

    /// A task with at most `history_length` messages of history (`None`: as many as the agent likes).
    pub async fn get(&self, id: &str, history_length: Option<u32>) -> Result<Task, ClientError> {
        let deadline = self.inner.options.timeout;
        match self.inner.version {
            ProtocolVersion::V1_0 => {
                let mut request = GetTaskRequest { tenant: None, id: id.to_owned(), history_length };
                self.tenant(&mut request.tenant);
                self.call("GetTask", &request, deadline).await
            }
            ProtocolVersion::V0_3 => {
                let params = v03::TaskQueryParams { id: id.to_owned(), history_length };
                self.call::<v03::Task>("tasks/get", &params, deadline).await.map(Into::into)
            }
        }
    }

    /// Stops a task.
    pub async fn cancel(&self, id: &str) -> Result<Task, ClientError> {
        let deadline = self.inner.options.timeout;
        match self.inner.version {
            ProtocolVersion::V1_0 => {
                let mut request = CancelTaskRequest { tenant: None, id: id.to_owned(), metadata: None };
                self.tenant(&mut request.tenant);
                self.call("CancelTask", &request, deadline).await
            }
            ProtocolVersion::V0_3 => {
                let params = v03::TaskIdParams { id: id.to_owned(), metadata: None };
                self.call::<v03::Task>("tasks/cancel", &params, deadline).await.map(Into::into)
            }
        }
    }

    /// Follows a task that is under way, from after the event `last_event_id` on if the agent numbers its
    /// events, else from now on. The first event is the task.
    pub async fn subscribe(&self, id: &str, last_event_id: Option<u64>) -> Result<EventStream, ClientError> {
        match self.inner.version {
            ProtocolVersion::V1_0 => {
                let mut request = SubscribeToTaskRequest { tenant: None, id: id.to_owned() };
                self.tenant(&mut request.tenant);
                self.open("SubscribeToTask", &request, last_event_id).await
            }
            ProtocolVersion::V0_3 => {
                let params = v03::TaskIdParams { id: id.to_owned(), metadata: None };
                self.open("tasks/resubscribe", &params, last_event_id).await
            }
        }
    }

    /// A client repeats the tenant of the interface that it chose.
    fn tenant(&self, tenant: &mut Option<String>) {
        if tenant.is_none() {
            tenant.clone_from(&self.inner.tenant);
        }
    }
}
