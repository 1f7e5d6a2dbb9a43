//! Where an agent lives, seen from whoever delegates to it.

use std::fmt;

use caipe_engine::{AgentName, CallId, DelegateUpdate, Resume};
use futures::stream::BoxStream;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::run::RunInfo;

/// Why a delegation ends that began in a home which the agent has left, and cannot go on in the new one.
pub(super) const MOVED: &str = "it has moved to another home while it was at work, and what it did there is not known \
                                here. Look what was done before you ask it again.";

/// A task for another agent.
#[derive(Debug, Clone)]
pub struct Delegation {
    /// The call that asks for it.
    pub call: CallId,
    /// The agent.
    pub agent: AgentName,
    /// What to do.
    pub prompt: String,
    /// Where it stood, if it does not start anew.
    pub resume: Option<Resume>,
    /// The run that it is part of.
    pub run: RunInfo,
}

/// A piece of news of a delegation.
#[derive(Debug)]
pub struct Update {
    /// What there is to tell.
    pub news: DelegateUpdate,
    /// Told once the delegating run has kept the news; dropped if it never will.
    pub kept: Option<oneshot::Sender<()>>,
}

impl Update {
    /// A piece of news, and how to learn that it was kept.
    pub fn awaited(news: DelegateUpdate) -> (Self, oneshot::Receiver<()>) {
        let (kept, told) = oneshot::channel();
        (Self { news, kept: Some(kept) }, told)
    }

    /// Whether nothing comes after it.
    pub fn is_last(&self) -> bool {
        matches!(self.news, DelegateUpdate::Finished { .. } | DelegateUpdate::Asks { .. })
    }
}

impl From<DelegateUpdate> for Update {
    fn from(news: DelegateUpdate) -> Self {
        Self { news, kept: None }
    }
}

/// News of a delegation; ends after [`DelegateUpdate::Finished`] or [`DelegateUpdate::Asks`].
pub type Updates = BoxStream<'static, Update>;

/// A place where an agent runs. Every home gives the same updates for the same work.
pub trait Home: Send + Sync + fmt::Debug {
    /// Starts the work, or goes on with it. Cancelling the token stops it, at a peer too; the stream then
    /// ends with [`DelegationOutcome::Canceled`](caipe_engine::DelegationOutcome::Canceled). Dropping the stream ends
    /// what this process does of it; a peer goes on, and can be taken up again.
    fn run(&self, delegation: Delegation, cancel: CancellationToken) -> Updates;
}
