//! What is remembered of each supervisor between passes. All of it can be found out again.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// What was reported last, until the watch has brought it.
    reported: Mutex<HashMap<Key, Arc<CaipeSupervisorStatus>>>,
    contents: Mutex<HashMap<(String, String), Arc<ConfigMapContent>>>,
}

impl Memory {
    /// What is remembered of one; nothing at first. Which spec is in the cluster is not remembered before the pass has
    /// kept it: one that is broken off may have written another.
    pub fn begin(&self, key: &Key) -> Remembered {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(remembered) = supervisors.get_mut(key) else { return Remembered::default() };
        let begun = remembered.as_ref().clone();
        Arc::make_mut(remembered).current = None;
        begun
    }

    /// Forgets everything: somebody else has written meanwhile.
    pub fn clear(&self) {
        self.supervisors.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.statuses().clear();
    }

    /// Remembers.
    pub fn keep(&self, key: &Key, remembered: Remembered) {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        supervisors.insert(key.clone(), Arc::new(remembered));
    }

    /// What was reported last, if the watch has not brought it yet.
    pub fn reported(&self, key: &Key) -> Option<Arc<CaipeSupervisorStatus>> {
        self.statuses().get(key).cloned()
    }

    /// Something is about to be reported: the watch may bring it before the API server answers.
    pub fn reports(&self, key: &Key, status: &Arc<CaipeSupervisorStatus>) -> Reporting<'_> {
        self.statuses().insert(key.clone(), Arc::clone(status));
        Reporting { memory: self, key: key.clone(), is_done: false }
    }

    /// The watch has brought a status: what was reported need not be remembered once it is that.
    pub fn brought(&self, key: &Key, status: &CaipeSupervisorStatus) {
        let mut reported = self.statuses();
        if reported.get(key).is_some_and(|reported| same(reported, status)) {
            reported.remove(key);
        }
    }

    fn statuses(&self) -> MutexGuard<'_, HashMap<Key, Arc<CaipeSupervisorStatus>>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.statuses().remove(key);
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

/// A report under way. One that fails or is broken off may not have been written, and is forgotten.
#[must_use]
pub struct Reporting<'a> {
    memory: &'a Memory,
    key: Key,
    is_done: bool,
}

impl Reporting<'_> {
    /// It was written.
    pub fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Reporting<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.memory.statuses().remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(epoch: i64) -> Arc<CaipeSupervisorStatus> {
        Arc::new(CaipeSupervisorStatus { epoch: Some(epoch), ..CaipeSupervisorStatus::default() })
    }

    #[test]
    fn a_report_is_remembered_until_the_watch_has_brought_it() {
        let (memory, key) = (Memory::default(), Key::new("team", "platform"));
        memory.reports(&key, &status(2)).done();
        memory.brought(&key, &status(1));
        assert_eq!(memory.reported(&key), Some(status(2)), "an older one came");
        memory.brought(&key, &status(2));
        assert_eq!(memory.reported(&key), None);
    }

    #[test]
    fn the_watch_may_be_faster_than_the_answer() {
        let (memory, key) = (Memory::default(), Key::new("team", "platform"));
        let reporting = memory.reports(&key, &status(2));
        memory.brought(&key, &status(2));
        reporting.done();
        assert_eq!(memory.reported(&key), None);
    }

    #[test]
    fn a_report_that_was_broken_off_may_not_have_been_written() {
        let (memory, key) = (Memory::default(), Key::new("team", "platform"));
        drop(memory.reports(&key, &status(2)));
        assert_eq!(memory.reported(&key), None);
    }
}
