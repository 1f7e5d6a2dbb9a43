//! The agents that a supervisor can delegate to, as one immutable snapshot that readers load without a lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use caipe_crds::resource::agent_state::AgentPlacement;
use caipe_engine::{AgentName, FileWrites, Resume, ResumePoint};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::delegation::AgentBackend;

/// An agent that a supervisor can delegate to.
#[derive(Debug, Clone)]
pub struct Delegate {
    /// Carries out its delegations.
    pub backend: Arc<dyn AgentBackend>,
    /// Counts the delegations that are active. It is closed when the backend takes no new ones.
    pub active: TaskTracker,
    pub title: String,
    /// When to ask it, for the model.
    pub routing_hint: String,
    /// What it shares with a run that delegates to it.
    pub sharing: Sharing,
}

/// What an agent shares with a run that delegates to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Where it may write virtual files, if it shares those of the scratchpad.
    pub files: Option<FileWrites>,
    /// How many words its answers shall have at most, if there is a number.
    pub answer_words: Option<u32>,
}

/// A backend for delegations that stopped at a placement which the agent has left. It takes no new ones.
#[derive(Debug, Clone)]
pub struct PreviousPlacement {
    /// Where they stopped.
    pub placement: AgentPlacement,
    /// Resumes them.
    pub backend: Arc<dyn AgentBackend>,
}

/// A backend that counts as active until this is dropped.
#[derive(Debug)]
pub struct BackendLease {
    /// Carries out the delegation.
    pub backend: Arc<dyn AgentBackend>,
    _active: TaskTrackerToken,
}

impl BackendLease {
    /// A lease of a backend that no migration replaces.
    pub(super) fn uncounted(backend: Arc<dyn AgentBackend>) -> Self {
        Self { backend, _active: TaskTracker::new().token() }
    }
}

/// What a model reads about each agent that it can ask. A migration does not change it.
pub type Listing = BTreeMap<AgentName, ListingEntry>;

/// What a model reads about an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingEntry {
    pub title: String,
    /// When to ask it.
    pub routing_hint: String,
    pub sharing: Sharing,
}

/// The agents that a supervisor can delegate to. Active runs see changes; a delegation ends where it started.
#[derive(Debug, Default)]
pub struct Delegates {
    snapshot: ArcSwap<Snapshot>,
    listing: watch::Sender<Arc<Listing>>,
}

#[derive(Debug, Default)]
struct Snapshot {
    current: BTreeMap<AgentName, (Arc<dyn AgentBackend>, TaskTracker)>,
    previous: BTreeMap<AgentName, PreviousPlacement>,
}

impl Delegates {
    /// The backend for a delegation: where it stopped, if it is resumed and that is known; else the current one.
    pub fn lease(&self, agent: &AgentName, resume: Option<&Resume>) -> Option<BackendLease> {
        let stopped = resume.and_then(|resume| resume.from.as_ref()).map(|point| match point {
            ResumePoint::Nested(_) => AgentPlacement::InProcess,
            ResumePoint::Remote { .. } => AgentPlacement::Remote,
        });
        loop {
            let snapshot = self.snapshot.load();
            let previous = snapshot.previous.get(agent);
            if let Some(previous) = previous.filter(|previous| Some(previous.placement) == stopped) {
                let backend = previous.backend.clone();
                return Some(BackendLease::uncounted(backend));
            }
            let (backend, active) = snapshot.current.get(agent)?;
            let lease = BackendLease { backend: backend.clone(), _active: active.token() };
            // A backend is closed only after a newer snapshot was published; read that one.
            if !active.is_closed() {
                return Some(lease);
            }
        }
    }

    /// What a model reads about the agents.
    pub fn listing(&self) -> Arc<Listing> {
        self.listing.borrow().clone()
    }

    /// The listing, and each change of it.
    pub fn watch(&self) -> watch::Receiver<Arc<Listing>> {
        self.listing.subscribe()
    }

    /// Publishes a new snapshot. Watchers are notified only if the listing changes.
    pub fn replace(
        &self,
        delegates: impl IntoIterator<Item = (AgentName, Delegate)>,
        previous: impl IntoIterator<Item = (AgentName, PreviousPlacement)>,
    ) {
        let (mut current, mut listing) = (BTreeMap::new(), Listing::new());
        for (name, Delegate { backend, active, title, routing_hint, sharing }) in delegates {
            current.insert(name.clone(), (backend, active));
            listing.insert(name, ListingEntry { title, routing_hint, sharing });
        }
        self.snapshot.store(Arc::new(Snapshot { current, previous: previous.into_iter().collect() }));
        self.listing.send_if_modified(|published| {
            let changed = **published != listing;
            if changed {
                *published = Arc::new(listing);
            }
            changed
        });
    }
}

impl FromIterator<(AgentName, Delegate)> for Delegates {
    fn from_iter<I: IntoIterator<Item = (AgentName, Delegate)>>(delegates: I) -> Self {
        let all = Self::default();
        all.replace(delegates, []);
        all
    }
}

#[cfg(test)]
#[path = "delegates_tests.rs"]
mod tests;
