//! The home of an agent that another process runs: this one speaks A2A to it, and tells what it does as an agent in
//! this process would.
//!
//! ```text
//! call (one remote call, spawned) -> read (pure: wire events -> run events, answer, question)
//!   |-- begin (finds the agent,        |-- facts, label (what artifacts say of themselves)
//!   |          tells it once)          |-- notice (what a foreign agent says in words)
//!   |-- request (ids, metadata)        |-- calls (each start has one end)
//!   |-- form (questions, decisions)    '-- answer (which of its words are the answer)
//!   '-- outcome (failures in words)
//! ```

mod answer;
mod aside;
mod begin;
mod call;
mod calls;
mod facts;
mod form;
mod label;
mod notice;
mod outcome;
#[cfg(test)]
mod peer;
mod probe;
mod read;
mod request;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::HeaderMap;
use caipe_a2a::client::{CardCache, ClientOptions, Reconnect};
use caipe_engine::AgentName;
use futures::StreamExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use url::Url;

use super::home::{Delegation, Home, Updates};
use crate::binding::ACTIVITY_EXTENSION;

pub use aside::Glance;
pub(crate) use form::in_words;
pub use probe::{ProbeError, Probed};

/// Updates that may wait for the delegating run; a slow one slows the reading of the agent's stream down.
const UPDATE_QUEUE: usize = 64;

/// How long a card, a look at a task and a cancellation may take.
const SHORT_CALL: Duration = Duration::from_secs(10);

/// An agent behind A2A.
#[derive(Clone)]
pub struct RemoteTarget {
    /// Its name here, by which the model asks for it and the user sees it.
    pub name: AgentName,
    /// Its base URL, under which its card is.
    pub url: Url,
    /// Headers of each request to it, templates resolved; secret values are marked sensitive.
    pub headers: HeaderMap,
    /// How long it may give no sign of life (`A2A_TIMEOUT`).
    pub silence: Duration,
    /// Tools that a human must approve there, whatever the agent's own process was told.
    pub require_approval: Vec<String>,
}

/// Neither the address nor the headers may be shown whole: both can hold secrets.
impl fmt::Debug for RemoteTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTarget")
            .field("name", &self.name)
            .field("host", &self.url.host_str())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("silence", &self.silence)
            .finish_non_exhaustive()
    }
}

/// An agent in another process.
#[derive(Debug)]
pub struct Remote {
    shared: Arc<Shared>,
}

/// What the calls of one agent share.
#[derive(Debug)]
struct Shared {
    target: RemoteTarget,
    http: reqwest::Client,
    cards: Arc<CardCache>,
    options: ClientOptions,
    /// Whether the card must bear the agent's name.
    named: bool,
    active: AtomicUsize,
    calls: AtomicU64,
}

impl Remote {
    /// An agent of this house, whose card must bear its name. `http` should come from
    /// [`caipe_a2a::client::http_builder`].
    pub fn new(target: RemoteTarget, http: reqwest::Client, cards: Arc<CardCache>) -> Arc<Self> {
        Self::build(target, http, cards, true)
    }

    /// An agent of somebody else, who calls it what they like.
    pub fn external(target: RemoteTarget, http: reqwest::Client, cards: Arc<CardCache>) -> Arc<Self> {
        Self::build(target, http, cards, false)
    }

    fn build(target: RemoteTarget, http: reqwest::Client, cards: Arc<CardCache>, named: bool) -> Arc<Self> {
        let options = options(&target);
        let (active, calls) = (AtomicUsize::new(0), AtomicU64::new(0));
        Arc::new(Self { shared: Arc::new(Shared { target, http, cards, options, named, active, calls }) })
    }

    /// Delegations that are under way.
    pub fn active(&self) -> usize {
        self.shared.active.load(Ordering::Relaxed)
    }

    /// Tasks that the agent was asked to begin: one for each delegation, however often a connection was lost.
    pub fn calls(&self) -> u64 {
        self.shared.calls.load(Ordering::Relaxed)
    }
}

impl Home for Remote {
    fn run(&self, delegation: Delegation, cancel: CancellationToken) -> Updates {
        let (sender, receiver) = mpsc::channel(UPDATE_QUEUE);
        let active = Active::new(self.shared.clone());
        let work = async move {
            let last = call::carry(&active.0, &delegation, &sender, &cancel).await;
            // Whoever hears the last word finds it counted no more.
            drop(active);
            if let Some(last) = last {
                drop(sender.send(last.into()).await);
            }
        };
        tokio::spawn(work.in_current_span());
        futures::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|update| (update, receiver))
        })
        .boxed()
    }
}

/// Counts a delegation as long as it lives.
struct Active(Arc<Shared>);

impl Active {
    fn new(shared: Arc<Shared>) -> Self {
        shared.active.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// One more task that the agent was asked to begin.
    fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

/// How the agent is talked to. A connection that has gone quiet is taken up again once, for it may only have been
/// forgotten on the way; an agent that stays silent then is given up.
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
