//! What is remembered of each supervisor between passes. All of it can be found out again.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use caipe_crds::CaipeSupervisorStatus;
use secrecy::SecretString;
use tokio::time::Instant;

use super::failed_containers::PodOwner;
use super::migration::CurrentSpec;
use super::missing_reference::MissingReference;
use super::status::same;
use crate::cache::Child;
use crate::key::Key;
use crate::references::ConfigMapContent;

/// What is remembered of one supervisor.
#[derive(Debug, Clone, Default)]
pub struct ReconcileState {
    /// The spec in the cluster.
    pub current: Option<CurrentSpec>,
    /// What was reported last, until the watch has brought it.
    pub reported: Option<Box<WrittenStatus>>,
    /// The Secret with the keys.
    pub keys: Option<Keys>,
    /// The uid of the resource whose namespace is being deleted: nothing can be made there any more.
    pub ending: Option<String>,
    /// Passes that failed in a row.
    pub failures: u32,
    /// When each pod was last told of an epoch.
    pub refreshed: HashMap<String, Instant>,
    /// Whose containers had ended and were not well again.
    pub failed_containers: BTreeSet<PodOwner>,
    /// What the resource refers to and is not there.
    pub missing_reference: Option<Box<MissingReference>>,
    /// Objects that were seen as they were applied, so that another state of them is news.
    applied: Box<[u64]>,
}

/// A status that was written.
#[derive(Debug, Clone)]
pub struct WrittenStatus {
    /// The uid of the resource that it is of.
    pub uid: String,
    /// It.
    pub status: CaipeSupervisorStatus,
}

/// What is known of the Secret with the keys.
#[derive(Debug, Clone)]
pub struct Keys {
    /// Its uid.
    pub uid: String,
    /// Its version, at which it was read.
    pub version: String,
    /// The bearer token of the pods' status.
    pub status_token: SecretString,
}

impl ReconcileState {
    /// Whether the object is as it was applied: nobody took a field of it since.
    pub fn is_untouched(&self, child: &Child) -> bool {
        self.applied.contains(&fingerprint(child))
    }

    /// Remembers how the objects are after they were applied.
    pub fn applied<'a>(&mut self, children: impl IntoIterator<Item = &'a Child>) {
        self.applied = children.into_iter().map(fingerprint).collect();
    }
}

fn fingerprint(child: &Child) -> u64 {
    let mut hasher = DefaultHasher::new();
    (child.kind, &child.name, &child.uid, &child.applied, &child.managed_fields, &child.controller)
        .hash(&mut hasher);
    hasher.finish()
}

/// What is remembered of all supervisors.
#[derive(Debug, Default)]
pub struct ReconcileStates {
    supervisors: Mutex<HashMap<Key, Arc<ReconcileState>>>,
    contents: Mutex<HashMap<(String, String), Arc<ConfigMapContent>>>,
}

impl ReconcileStates {
    /// What is remembered of the one with this uid; nothing at first. Which spec is in the cluster is not remembered before
    /// the pass has kept it: one that is broken off may have written another.
    pub fn load(&self, key: &Key, uid: Option<&str>) -> ReconcileState {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = supervisors.get_mut(key) else { return ReconcileState::default() };
        let mut begun = state.as_ref().clone();
        begun.reported = begun.reported.filter(|reported| Some(reported.uid.as_str()) == uid);
        Arc::make_mut(state).current = None;
        begun
    }

    /// Forgets everything: somebody else has written meanwhile.
    pub fn clear(&self) {
        self.supervisors.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Remembers.
    pub fn save(&self, key: &Key, state: ReconcileState) {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        supervisors.insert(key.clone(), Arc::new(state));
    }

    /// Whether the watch has not brought yet what was reported last.
    pub fn has_reported(&self, key: &Key) -> bool {
        let supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        supervisors.get(key).is_some_and(|state| state.reported.is_some())
    }

    /// The watch has brought a status: what was reported need not be remembered once it is that.
    pub fn observed_status(&self, key: &Key, status: &CaipeSupervisorStatus) {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = supervisors.get_mut(key) else { return };
        if state.reported.as_ref().is_some_and(|reported| same(&reported.status, status)) {
            Arc::make_mut(state).reported = None;
        }
    }

    /// Whether nothing can be made for the resource with this uid any more.
    pub fn is_ending(&self, key: &Key, uid: Option<&str>) -> bool {
        let supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        let ending = supervisors.get(key).and_then(|state| state.ending.as_deref());
        ending.is_some() && ending == uid
    }

    /// Counts a pass that failed; how many did in a row before it.
    pub fn failed(&self, key: &Key) -> u32 {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        let state = Arc::make_mut(supervisors.entry(key.clone()).or_default());
        state.failures = state.failures.saturating_add(1);
        state.failures - 1
    }

    /// Counts a pass that did not fail.
    pub fn succeeded(&self, key: &Key) {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = supervisors.get_mut(key).filter(|state| state.failures > 0) {
            Arc::make_mut(state).failures = 0;
        }
    }

    /// Forgets a supervisor that is gone; says whether it was known.
    pub fn forget(&self, key: &Key) -> bool {
        self.supervisors.lock().unwrap_or_else(PoisonError::into_inner).remove(key).is_some()
    }

    /// The content of a `ConfigMap` of that version, if it was read before.
    pub fn content(&self, namespace: &str, name: &str, version: &str) -> Option<Arc<ConfigMapContent>> {
        let contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (namespace.to_owned(), name.to_owned());
        contents.get(&place).filter(|content| content.version == version).cloned()
    }

    /// Remembers the content of a `ConfigMap`; none forgets it.
    pub fn cache_content(&self, namespace: &str, name: &str, content: Option<Arc<ConfigMapContent>>) {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (namespace.to_owned(), name.to_owned());
        match content {
            Some(content) => contents.insert(place, content),
            None => contents.remove(&place),
        };
    }
}
