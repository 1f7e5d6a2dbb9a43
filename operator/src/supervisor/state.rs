//! State of supervisors between reconciles. All of it can be restored from the cluster.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use caipe_crds::CaipeSupervisorStatus;
use tokio::time::Instant;

use super::failed_containers::PodOwner;
use super::keys::Keys;
use super::migration::CurrentSpec;
use super::missing_reference::MissingReference;
use super::status::same;
use crate::cache::Child;
use crate::compact_map::CompactMap;
use crate::key::Key;

/// The state of one supervisor.
#[derive(Debug, Clone, Default)]
pub struct ReconcileState {
    /// The spec in the cluster.
    pub current: Option<CurrentSpec>,
    /// The last written status, until the watch delivers it.
    pub reported: Option<Box<WrittenStatus>>,
    /// The keys.
    pub keys: Option<Keys>,
    /// The uid of a resource whose namespace is being deleted, so that nothing can be created there.
    pub ending: Option<String>,
    /// Failed reconciles in a row.
    pub failures: u32,
    /// When each pod was last annotated with an epoch.
    pub refreshed: CompactMap<Box<str>, Instant>,
    /// Components with failed containers.
    pub failed_containers: BTreeSet<PodOwner>,
    /// The missing reference, if there is one.
    pub missing_reference: Option<Box<MissingReference>>,
    /// Fingerprints of objects after they were applied, which reveal later changes.
    applied: Box<[u64]>,
}

/// A status that was written.
#[derive(Debug, Clone)]
pub struct WrittenStatus {
    /// The uid of its resource.
    pub uid: String,
    pub status: CaipeSupervisorStatus,
}

impl ReconcileState {
    /// Whether the object is unchanged since it was applied.
    pub fn is_untouched(&self, child: &Child) -> bool {
        self.applied.contains(&fingerprint(child))
    }

    /// Records the objects after they were applied.
    pub fn applied<'a>(&mut self, children: impl IntoIterator<Item = &'a Child>) {
        self.applied = children.into_iter().map(fingerprint).collect();
    }
}

fn fingerprint(child: &Child) -> u64 {
    let mut hasher = DefaultHasher::new();
    (child.kind, &child.name, &child.uid, &child.applied, &child.managed_fields, &child.owner.controller)
        .hash(&mut hasher);
    hasher.finish()
}

/// The state of all supervisors.
#[derive(Debug, Default)]
pub struct ReconcileStates {
    supervisors: Mutex<HashMap<Key, Box<ReconcileState>>>,
}

impl ReconcileStates {
    /// The state for a reconcile of the resource with this uid, which is known from now on. Removes the current spec
    /// until the reconcile saves it, because an interrupted one may have written another.
    pub fn load(&self, key: &Key, uid: Option<&str>) -> ReconcileState {
        let mut supervisors = self.supervisors();
        let state = supervisors.entry(key.clone()).or_default();
        let mut begun = ReconcileState::clone(state);
        begun.reported = begun.reported.filter(|reported| Some(reported.uid.as_str()) == uid);
        state.current = None;
        begun
    }

    /// Forgets everything, because another operator has written meanwhile.
    pub fn clear(&self) {
        self.supervisors().clear();
    }

    /// Saves the state after a reconcile, unless the supervisor was forgotten meanwhile.
    pub fn save(&self, key: &Key, state: ReconcileState) {
        if let Some(known) = self.supervisors().get_mut(key) {
            **known = state;
        }
    }

    /// Whether the supervisor was loaded and not forgotten since.
    pub fn is_known(&self, key: &Key) -> bool {
        self.supervisors().contains_key(key)
    }

    /// The known supervisors.
    pub fn keys(&self) -> Vec<Key> {
        self.supervisors().keys().cloned().collect()
    }

    /// Whether the watch has not yet delivered the last written status.
    pub fn has_reported(&self, key: &Key) -> bool {
        self.supervisors().get(key).is_some_and(|state| state.reported.is_some())
    }

    /// Takes in a status from the watch, which drops the last written one if they are equal.
    pub fn observed_status(&self, key: &Key, status: &CaipeSupervisorStatus) {
        let mut supervisors = self.supervisors();
        let Some(state) = supervisors.get_mut(key) else { return };
        if state.reported.as_ref().is_some_and(|reported| same(&reported.status, status)) {
            state.reported = None;
        }
    }

    /// Whether the namespace of the resource with this uid is being deleted.
    pub fn is_ending(&self, key: &Key, uid: Option<&str>) -> bool {
        let supervisors = self.supervisors();
        let ending = supervisors.get(key).and_then(|state| state.ending.as_deref());
        ending.is_some() && ending == uid
    }

    /// Counts a failure; returns the number of failures in a row before it.
    pub fn failed(&self, key: &Key) -> u32 {
        let mut supervisors = self.supervisors();
        let Some(state) = supervisors.get_mut(key) else { return 0 };
        state.failures = state.failures.saturating_add(1);
        state.failures - 1
    }

    /// Resets the count of failures.
    pub fn succeeded(&self, key: &Key) {
        if let Some(state) = self.supervisors().get_mut(key) {
            state.failures = 0;
        }
    }

    /// Forgets a deleted supervisor.
    pub fn forget(&self, key: &Key) {
        self.supervisors().remove(key);
    }

    fn supervisors(&self) -> MutexGuard<'_, HashMap<Key, Box<ReconcileState>>> {
        self.supervisors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
