//! What is remembered of each supervisor between passes. All of it can be found out again.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use caipe_crds::CaipeSupervisorStatus;
use secrecy::SecretString;
use tokio::time::Instant;

use super::absence::Absence;
use super::ended::Whose;
use super::key::Key;
use super::moves::Current;
use super::references::ConfigMapContent;
use super::status::same;
use crate::world::Child;

/// What is remembered of one supervisor.
#[derive(Debug, Clone, Default)]
pub struct Remembered {
    /// The spec in the cluster.
    pub current: Option<Current>,
    /// What was reported last, until the watch has brought it.
    pub reported: Option<Box<Reported>>,
    /// The Secret with the keys.
    pub keys: Option<Keys>,
    /// The uid of the resource whose namespace is being deleted: nothing can be made there any more.
    pub ending: Option<String>,
    /// Passes that failed in a row.
    pub failures: u32,
    /// When each pod was last told of an epoch.
    pub woken: HashMap<String, Instant>,
    /// Whose containers had ended and were not well again.
    pub ended: BTreeSet<Whose>,
    /// What the resource refers to and is not there.
    pub absence: Option<Box<Absence>>,
    /// Objects that were seen as they were applied, so that another state of them is news.
    applied: Box<[u64]>,
}

/// A status that was written.
#[derive(Debug, Clone)]
pub struct Reported {
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

impl Remembered {
    /// Whether the object is as it was applied: nobody took a field of it since.
    pub fn is_untouched(&self, child: &Child) -> bool {
        self.applied.contains(&mark(child))
    }

    /// Remembers how the objects are after they were applied.
    pub fn applied<'a>(&mut self, children: impl IntoIterator<Item = &'a Child>) {
        self.applied = children.into_iter().map(mark).collect();
    }
}

fn mark(child: &Child) -> u64 {
    let mut hasher = DefaultHasher::new();
    (child.kind, &child.name, &child.uid, &child.applied, &child.owned, &child.controller).hash(&mut hasher);
    hasher.finish()
}

/// What is remembered of all supervisors.
#[derive(Debug, Default)]
pub struct Memory {
    supervisors: Mutex<HashMap<Key, Arc<Remembered>>>,
    contents: Mutex<HashMap<(String, String), Arc<ConfigMapContent>>>,
}

impl Memory {
    /// What is remembered of the one with this uid; nothing at first. Which spec is in the cluster is not remembered before
    /// the pass has kept it: one that is broken off may have written another.
    pub fn begin(&self, key: &Key, uid: Option<&str>) -> Remembered {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(remembered) = supervisors.get_mut(key) else { return Remembered::default() };
        let mut begun = remembered.as_ref().clone();
        begun.reported = begun.reported.filter(|reported| Some(reported.uid.as_str()) == uid);
        Arc::make_mut(remembered).current = None;
        begun
    }

    /// Forgets everything: somebody else has written meanwhile.
    pub fn clear(&self) {
        self.supervisors.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Remembers.
    pub fn keep(&self, key: &Key, remembered: Remembered) {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        supervisors.insert(key.clone(), Arc::new(remembered));
    }

    /// Whether the watch has not brought yet what was reported last.
    pub fn has_reported(&self, key: &Key) -> bool {
        let supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        supervisors.get(key).is_some_and(|remembered| remembered.reported.is_some())
    }

    /// The watch has brought a status: what was reported need not be remembered once it is that.
    pub fn brought(&self, key: &Key, status: &CaipeSupervisorStatus) {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(remembered) = supervisors.get_mut(key) else { return };
        if remembered.reported.as_ref().is_some_and(|reported| same(&reported.status, status)) {
            Arc::make_mut(remembered).reported = None;
        }
    }

    /// Whether nothing can be made for the resource with this uid any more.
    pub fn is_ending(&self, key: &Key, uid: Option<&str>) -> bool {
        let supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        let ending = supervisors.get(key).and_then(|remembered| remembered.ending.as_deref());
        ending.is_some() && ending == uid
    }

    /// Counts a pass that failed; how many did in a row before it.
    pub fn failed(&self, key: &Key) -> u32 {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered = Arc::make_mut(supervisors.entry(key.clone()).or_default());
        remembered.failures = remembered.failures.saturating_add(1);
        remembered.failures - 1
    }

    /// Counts a pass that did not fail.
    pub fn succeeded(&self, key: &Key) {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(remembered) = supervisors.get_mut(key).filter(|remembered| remembered.failures > 0) {
            Arc::make_mut(remembered).failures = 0;
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
    pub fn keep_content(&self, namespace: &str, name: &str, content: Option<Arc<ConfigMapContent>>) {
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (namespace.to_owned(), name.to_owned());
        match content {
            Some(content) => contents.insert(place, content),
            None => contents.remove(&place),
        };
    }
}
