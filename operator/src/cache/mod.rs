//! A cache of the objects around each supervisor, reduced to what reconciles need and updated by watches.
//!
//! The cache does no input or output: [`watch`] fills it, reconciles read it.

mod data_version;
mod deployment;
mod managed_fields;
mod managed_object;
mod pod;
mod queue;
mod reservation;
mod sync;
pub mod watch;

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use deployment::{PartialDeployment, Workload};
pub use managed_fields::ManagedFields;
pub use managed_object::{Child, Details, Owner};
pub use pod::{Pod, Trouble};
pub use queue::{Running, WorkQueue};
pub use reservation::NameReservation;
pub use sync::{ScopeSync, SyncState, WatchSync};

use crate::compact_map::CompactMap;
use crate::key::Key;
use crate::kind::Kind;
use crate::references::{ConfigMapContent, Names, Version};

/// The observed objects of one supervisor.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedState {
    /// Managed objects, by kind and name.
    pub children: CompactMap<(Kind, Arc<str>), Child>,
    /// The state of its Deployments, by name.
    pub workloads: CompactMap<Arc<str>, Workload>,
    pub pods: CompactMap<Arc<str>, Pod>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CachedObject {
    child: Option<Child>,
    workload: Option<Workload>,
}

impl CachedObject {
    fn of(observed: &ObservedState, kind: Kind, name: &str) -> Self {
        let child = observed.child(kind, name).cloned();
        let workload = observed.workloads.get(name).filter(|_| kind == Kind::Deployment).cloned();
        Self { child, workload }
    }
}

/// A namespace and a name.
type Place = (String, String);

/// The cache of watched objects.
#[derive(Debug, Default)]
pub struct Cache {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    observed: HashMap<Key, Arc<ObservedState>>,
    reservations: HashMap<reservation::Place, Key>,
    versions: HashMap<Kind, HashMap<Place, Version>>,
    users: HashMap<(Kind, Place), BTreeSet<Key>>,
    uses: HashMap<Key, Names>,
    /// The content of referenced `ConfigMap`s.
    contents: HashMap<Place, Arc<ConfigMapContent>>,
}

impl Cache {
    /// The observed objects of a supervisor.
    pub fn observed(&self, key: &Key) -> Arc<ObservedState> {
        self.lock().observed.get(key).cloned().unwrap_or_default()
    }

    /// The version of a `ConfigMap` or Secret; none if it does not exist.
    pub fn version(&self, kind: Kind, namespace: &str, name: &str) -> Option<Version> {
        let place = (namespace.to_owned(), name.to_owned());
        self.lock().versions.get(&kind)?.get(&place).cloned()
    }

    /// Sets the references of a supervisor, so that a change of one queues it.
    pub fn set_references(&self, key: &Key, names: Names) {
        let mut inner = self.lock();
        if inner.uses.get(key).unwrap_or(&Names::default()) == &names {
            return;
        }
        inner.unuse(key);
        for user in places(key, &names) {
            inner.users.entry(user).or_default().insert(key.clone());
        }
        if names != Names::default() {
            inner.uses.insert(key.clone(), names);
        }
    }

    /// Forgets the references of a deleted supervisor. Watches remove its objects.
    pub fn forget(&self, key: &Key) {
        self.lock().unuse(key);
    }

    /// The cached content of a `ConfigMap` of this version.
    pub fn content(&self, namespace: &str, name: &str, version: &str) -> Option<Arc<ConfigMapContent>> {
        let place = (namespace.to_owned(), name.to_owned());
        self.lock().contents.get(&place).filter(|content| content.version == version).cloned()
    }

    /// Caches the content of a `ConfigMap` as long as a supervisor refers to it; none removes it.
    pub fn put_content(&self, namespace: &str, name: &str, content: Option<Arc<ConfigMapContent>>) {
        let (mut inner, place) = (self.lock(), (namespace.to_owned(), name.to_owned()));
        match content.filter(|_| inner.is_used(&place)) {
            Some(content) => inner.contents.insert(place, content),
            None => inner.contents.remove(&place),
        };
    }

    /// The cached object, for [`Self::record_write`].
    pub fn known(&self, key: &Key, kind: Kind, name: &str) -> CachedObject {
        CachedObject::of(&self.observed(key), kind, name)
    }

    /// Takes in the response to a write, so that the next reconcile sees it before the watch does. Ignored if the
    /// watch has changed the object since `before`: that version may be newer, and would not be delivered again.
    pub fn record_write(&self, key: &Key, child: &Child, workload: Option<Workload>, before: &CachedObject) {
        let seen = match workload {
            Some(workload) => Extract::Deployment(child.clone(), workload),
            None => Extract::Child(child.clone()),
        };
        self.lock().change(key, |observed| {
            let is_unchanged = CachedObject::of(observed, child.kind, &child.name) == *before;
            is_unchanged && observed.put(seen)
        });
    }

    /// Records since when an object drains.
    pub fn record_draining(&self, key: &Key, kind: Kind, name: &str, since: Option<&str>) {
        self.lock().change(key, |observed| {
            let Some(child) = observed.children.get_mut_by(order(kind, name)) else { return false };
            child.set_draining_since(since);
            true
        });
    }

    /// Records the epoch in a pod's annotation.
    pub fn record_epoch(&self, key: &Key, pod: &str, epoch: &str) {
        self.lock().change(key, |observed| {
            let Some(pod) = observed.pods.get_mut(pod) else { return false };
            pod.epoch = Some(epoch.into());
            true
        });
    }

    /// Adds an object; returns whether it has changed.
    fn put(&self, key: &Key, seen: Extract) -> bool {
        self.lock().change(key, |observed| observed.put(seen))
    }

    /// Removes an object; returns whether it existed.
    fn remove(&self, key: &Key, kind: Kind, name: &str) -> bool {
        self.lock().change(key, |observed| observed.remove(kind, name))
    }

    /// Removes the objects of the kind in the scope that were not listed; returns their supervisors.
    fn retain(&self, kind: Kind, scope: Option<&str>, listed: &HashSet<(Key, String)>) -> Vec<Key> {
        let mut inner = self.lock();
        let within = |key: &&Key| scope.is_none_or(|scope| scope == key.namespace());
        let mut keys: Vec<Key> = inner.observed.keys().filter(within).cloned().collect();
        keys.retain(|key| {
            let is_listed = |name: &str| listed.contains(&(key.clone(), name.to_owned()));
            inner.change(key, |observed| observed.retain(kind, is_listed))
        });
        keys
    }

    /// Sets or removes the version of a referenced object; returns the supervisors that refer to it if it has
    /// changed.
    fn put_version(&self, kind: Kind, place: &Place, version: Option<&Version>) -> Vec<Key> {
        let mut inner = self.lock();
        let versions = inner.versions.entry(kind).or_default();
        let before = match version {
            Some(version) => versions.insert(place.clone(), version.clone()),
            None => versions.remove(place),
        };
        if before.as_ref() == version {
            return Vec::new();
        }
        let users = inner.users.get(&(kind, place.clone()));
        users.into_iter().flatten().cloned().collect()
    }

    /// Removes the versions in the scope that were not listed; returns the supervisors that referred to them.
    fn retain_versions(&self, kind: Kind, scope: Option<&str>, listed: &HashSet<Place>) -> Vec<Key> {
        let gone: Vec<Place> = {
            let inner = self.lock();
            let places = inner.versions.get(&kind).into_iter().flat_map(HashMap::keys);
            let within = |place: &&Place| scope.is_none_or(|scope| scope == place.0);
            places.filter(within).filter(|place| !listed.contains(*place)).cloned().collect()
        };
        gone.iter().flat_map(|place| self.put_version(kind, place, None)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Changes the objects of a supervisor; returns whether anything has changed.
    fn change(&mut self, key: &Key, change: impl FnOnce(&mut ObservedState) -> bool) -> bool {
        let observed = self.observed.entry(key.clone()).or_default();
        let changed = change(Arc::make_mut(observed));
        if observed.is_empty() {
            self.observed.remove(key);
        }
        changed
    }

    fn unuse(&mut self, key: &Key) {
        let Some(names) = self.uses.remove(key) else { return };
        for place in places(key, &names) {
            if let Some(users) = self.users.get_mut(&place) {
                users.remove(key);
                if users.is_empty() {
                    self.users.remove(&place);
                    self.contents.remove(&place.1);
                }
            }
        }
    }

    fn is_used(&self, config_map: &Place) -> bool {
        self.users.contains_key(&(Kind::ConfigMap, config_map.clone()))
    }
}

fn places(key: &Key, names: &Names) -> Vec<(Kind, Place)> {
    let place = |name: &String| (key.namespace().to_owned(), name.clone());
    let maps = names.config_maps.iter().map(|name| (Kind::ConfigMap, place(name)));
    let secrets = names.secrets.iter().map(|name| (Kind::Secret, place(name)));
    maps.chain(secrets).collect()
}

/// The extract of a watched object.
#[derive(Debug, Clone, PartialEq)]
enum Extract {
    Child(Child),
    Deployment(Child, Workload),
    Pod(String, Box<Pod>),
}

impl ObservedState {
    pub fn child(&self, kind: Kind, name: &str) -> Option<&Child> {
        self.children.get_by(order(kind, name))
    }

    fn put(&mut self, seen: Extract) -> bool {
        match seen {
            Extract::Child(child) => self.put_child(child),
            Extract::Deployment(child, workload) => {
                let name = Arc::clone(&child.name);
                let is_new = self.put_child(child);
                put(&mut self.workloads, name, workload) || is_new
            }
            Extract::Pod(name, pod) => put(&mut self.pods, name.into(), *pod),
        }
    }

    fn put_child(&mut self, child: Child) -> bool {
        put(&mut self.children, (child.kind, Arc::clone(&child.name)), child)
    }

    fn remove(&mut self, kind: Kind, name: &str) -> bool {
        if kind == Kind::Pod {
            return self.pods.remove(name).is_some();
        }
        if kind == Kind::Deployment {
            self.workloads.remove(name);
        }
        self.children.remove_by(order(kind, name)).is_some()
    }

    /// Removes the objects of the kind that `keep` rejects; returns whether there was one.
    fn retain(&mut self, kind: Kind, keep: impl Fn(&str) -> bool) -> bool {
        let gone: Vec<Arc<str>> = self.names(kind).filter(|name| !keep(name)).collect();
        for name in &gone {
            self.remove(kind, name);
        }
        !gone.is_empty()
    }

    fn names(&self, kind: Kind) -> Box<dyn Iterator<Item = Arc<str>> + '_> {
        if kind == Kind::Pod {
            return Box::new(self.pods.keys().cloned());
        }
        let of_kind = move |(found, _): &&(Kind, Arc<str>)| *found == kind;
        Box::new(self.children.keys().filter(of_kind).map(|(_, name)| Arc::clone(name)))
    }

    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.pods.is_empty()
    }
}

/// The order of keys relative to an object's.
fn order(kind: Kind, name: &str) -> impl Fn(&(Kind, Arc<str>)) -> Ordering {
    move |(known, text)| (*known, &**text).cmp(&(kind, name))
}

/// Inserts a changed value; returns whether it has changed.
fn put<K: Ord, V: PartialEq>(map: &mut CompactMap<K, V>, key: K, value: V) -> bool {
    let is_known = map.get(&key) == Some(&value);
    if !is_known {
        map.insert(key, value);
    }
    !is_known
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;

#[cfg(test)]
mod extract_tests;
