//! The backend of an agent that another process runs: a client of A2A that sends the same events as an in-process agent.
//!
//! ```text
//! call (one delegation) -> reader (pure: wire events -> run events, answer, question)
//!   |-- start (connects,                 |-- facts, artifact_labels (metadata of artifacts)
//!   |          sends the task once)      |-- notice (texts of foreign agents)
//!   |-- request (ids, metadata)          |-- open_calls (each start has one end)
//!   |-- form (questions, decisions)      '-- answer (the text that is the answer)
//!   '-- outcome (failures as text)
//! ```

mod answer_builder;
mod artifact_labels;
mod begin_task;
mod call;
mod facts;
mod failure;
mod form;
mod open_calls;
mod probe;
mod reader;
mod request;
mod status_text;
mod target;
mod task_status;
#[cfg(test)]
mod test_agent;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use caipe_a2a::client::{A2aClient, CardCache, ClientError, ClientOptions, Reconnect};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::binding::ACTIVITY_EXTENSION;
use crate::delegation::{AgentBackend, Delegation, DelegationEnd, DelegationEvent};

pub(crate) use form::in_words;
pub(crate) use probe::UNGUARDED;
pub use probe::{ProbeError, ProbeReport};
pub(crate) use request::conversation;
pub use target::RemoteTarget;
pub(crate) use target::{NO_ADDRESS, displayed_url, remote_target};
pub use task_status::RemoteTaskStatus;

/// The time limit of a request for a card or a task, and of a cancellation.
const SHORT_CALL: Duration = Duration::from_secs(10);

/// The number of attempts to reach an agent or to pass a message to it, and the wait before the second one, which doubles each time.
const TRIES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// An agent in another process.
#[derive(Debug)]
pub struct RemoteBackend {
    target: RemoteTarget,
    http: reqwest::Client,
    cards: Arc<CardCache>,
    options: ClientOptions,
    /// Whether the card must have the agent's name.
    named: bool,
    active: AtomicUsize,
    calls: AtomicU64,
}

impl RemoteBackend {
    /// An agent of this product, whose card must have its name. `http` should come from
    /// [`caipe_a2a::client::http_builder`].
    pub fn new(target: RemoteTarget, http: reqwest::Client, cards: Arc<CardCache>) -> Arc<Self> {
        Self::build(target, http, cards, true)
    }

    /// A foreign agent, whose card may have any name.
    pub fn external(target: RemoteTarget, http: reqwest::Client, cards: Arc<CardCache>) -> Arc<Self> {
        Self::build(target, http, cards, false)
    }

    fn build(target: RemoteTarget, http: reqwest::Client, cards: Arc<CardCache>, named: bool) -> Arc<Self> {
        let options = options(&target);
        let (active, calls) = (AtomicUsize::new(0), AtomicU64::new(0));
        Arc::new(Self { target, http, cards, options, named, active, calls })
    }

    /// The number of active delegations.
    pub fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// The number of tasks that were sent to the agent: one for each delegation, even if a connection was lost.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Connects to the agent with its cached card.
    async fn client(&self) -> Result<A2aClient, ClientError> {
        let Self { target, http, options, cards, .. } = self;
        A2aClient::connect_with(target.url.as_str(), http.clone(), options.clone(), cards).await
    }
}

#[async_trait]
impl AgentBackend for RemoteBackend {
    async fn run(
        &self,
        delegation: Delegation,
        events: mpsc::Sender<DelegationEvent>,
        cancel: CancellationToken,
    ) -> DelegationEnd {
        let _active = Active::new(&self.active);
        call::run(self, &delegation, &events, &cancel).await
    }

    async fn cancel_task(&self, task: &str) -> Result<(), String> {
        let canceled = async { self.client().await?.cancel(task).await };
        let name = &self.target.name;
        match tokio::time::timeout(SHORT_CALL, canceled).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(ClientError::Remote(error))) => {
                tracing::debug!(agent = %name, task, %error, "the agent has not canceled a task");
                Ok(())
            }
            Ok(Err(error)) => Err(error.category().to_owned()),
            Err(_) => Err("it took too long".to_owned()),
        }
    }
}

/// Counts a delegation until it is dropped.
struct Active<'a>(&'a AtomicUsize);

impl<'a> Active<'a> {
    fn new(active: &'a AtomicUsize) -> Self {
        active.fetch_add(1, Ordering::Relaxed);
        Self(active)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The options of the client. An idle connection is reestablished once, because a proxy may have dropped it; an agent that
/// stays silent then has failed.
fn options(target: &RemoteTarget) -> ClientOptions {
    ClientOptions {
        headers: target.headers.clone(),
        extensions: vec![ACTIVITY_EXTENSION.to_owned()],
        timeout: SHORT_CALL.min(target.silence),
        answer_timeout: target.silence,
        idle_timeout: target.silence,
        reconnect: Reconnect { give_up_after: target.silence, ..Reconnect::default() },
        ..ClientOptions::default()
    }
}
