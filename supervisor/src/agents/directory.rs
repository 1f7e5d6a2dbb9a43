//! Who may be asked, and where each one lives right now.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use caipe_crds::resource::status::AgentPlacement;
use caipe_engine::{AgentName, Resume, ResumePoint};
use tokio::sync::watch;

use super::home::Home;

/// Somebody to delegate to.
#[derive(Debug, Clone)]
pub struct Delegate {
    /// Where it lives.
    pub home: Arc<dyn Home>,
    /// Its name in plans.
    pub title: String,
    /// When to ask it, for the model.
    pub routing_hint: String,
}

/// Whoever can be delegated to. Runs that are under way see it change; a delegation ends at the home where it began.
#[derive(Debug, Default)]
pub struct Directory {
    places: RwLock<Places>,
    listing: watch::Sender<Arc<Listing>>,
}

/// Where everybody lives, and lived: one moment's truth.
#[derive(Debug, Default)]
struct Places {
    homes: BTreeMap<AgentName, Arc<dyn Home>>,
    former: BTreeMap<AgentName, Former>,
}

impl Places {
    fn home(&self, agent: &AgentName) -> Option<Arc<dyn Home>> {
        self.homes.get(agent).cloned()
    }
}

/// A home that takes no new delegations, for those that stopped where the agent does not live any more.
#[derive(Debug, Clone)]
pub struct Former {
    /// Where they stopped.
    pub placement: AgentPlacement,
    /// Who goes on with them.
    pub home: Arc<dyn Home>,
}

/// Who may be asked, with what a model is told of each. Says nothing of homes: a move changes none of it.
pub type Listing = BTreeMap<AgentName, Entry>;

/// What a model is told of somebody to delegate to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name in plans.
    pub title: String,
    /// When to ask it.
    pub routing_hint: String,
}

impl Directory {
    /// Where an agent lives now. To be used at once: whoever holds a home keeps it from being given up.
    pub fn home(&self, agent: &AgentName) -> Option<Arc<dyn Home>> {
        self.places().home(agent)
    }

    fn places(&self) -> RwLockReadGuard<'_, Places> {
        self.places.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a delegation goes: one that goes on, to where it stopped, as far as that is known.
    pub fn home_for(&self, agent: &AgentName, resume: Option<&Resume>) -> Option<Arc<dyn Home>> {
        let stopped = match resume.and_then(|resume| resume.from.as_ref()) {
            Some(ResumePoint::Nested(_)) => AgentPlacement::InProcess,
            Some(ResumePoint::Remote { .. }) => AgentPlacement::Remote,
            None => return self.home(agent),
        };
        let places = self.places();
        match places.former.get(agent) {
            Some(former) if former.placement == stopped => Some(former.home.clone()),
            _ => places.home(agent),
        }
    }

    /// Who may be asked.
    pub fn listing(&self) -> Arc<Listing> {
        self.listing.borrow().clone()
    }

    /// Who may be asked, and whenever that changes.
    pub fn watch(&self) -> watch::Receiver<Arc<Listing>> {
        self.listing.subscribe()
    }

    /// Puts these homes, and these former ones, in the place of all that there were, at once. Only a change of who may be
    /// asked, or of what is told of them, is told to those who watch.
    pub fn replace(
        &self,
        delegates: impl IntoIterator<Item = (AgentName, Delegate)>,
        former: impl IntoIterator<Item = (AgentName, Former)>,
    ) {
        let (mut homes, mut listing) = (BTreeMap::new(), Listing::new());
        for (name, Delegate { home, title, routing_hint }) in delegates {
            homes.insert(name.clone(), home);
            listing.insert(name, Entry { title, routing_hint });
        }
        let places = Places { homes, former: former.into_iter().collect() };
        *self.places.write().unwrap_or_else(PoisonError::into_inner) = places;
        self.listing.send_if_modified(|told| {
            let changed = **told != listing;
            if changed {
                *told = Arc::new(listing);
            }
            changed
        });
    }
}

impl FromIterator<(AgentName, Delegate)> for Directory {
    fn from_iter<I: IntoIterator<Item = (AgentName, Delegate)>>(delegates: I) -> Self {
        let directory = Self::default();
        directory.replace(delegates, []);
        directory
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
