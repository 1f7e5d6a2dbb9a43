//! What the cluster holds, as last seen: small extracts of the objects around each supervisor, kept up to date by watches.
//!
//! Nothing here waits or talks to anybody: watches feed it ([`watch`]), passes read it.

mod child;
mod deployment;
mod dirty;
mod kind;
mod owned;
mod pod;
pub mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use child::Child;
pub use deployment::Workload;
pub use dirty::Dirty;
pub use kind::Kind;
pub use owned::Owned;
pub use pod::{Pod, Trouble};

use crate::supervisor::key::Key;
use crate::supervisor::references::{Names, Version};

/// What is around one supervisor. Each part is kept once and shared with the passes that look at it; nodes of the trees,
/// which have room for eleven, stay small that way, too.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Around {
    /// The objects that were made for it, by kind and name.
    pub children: BTreeMap<(Kind, String), Arc<Child>>,
    /// How its Deployments are, by name.
    pub workloads: BTreeMap<String, Arc<Workload>>,
    /// Its pods, by name.
    pub pods: BTreeMap<String, Arc<Pod>>,
}

/// What is known of an object that was made for a supervisor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    child: Option<Arc<Child>>,
    workload: Option<Arc<Workload>>,
}

impl Known {
    fn of(around: Option<&Around>, kind: Kind, name: &str) -> Self {
        let Some(around) = around else { return Self::default() };
        let child = around.children.get(&(kind, name.to_owned())).cloned();
        let workload = around.workloads.get(name).filter(|_| kind == Kind::Deployment).cloned();
        Self { child, workload }
    }
}

/// An object that resources refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Referred {
    /// A `ConfigMap`.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// A namespace and a name.
type Place = (String, String);

/// What the cluster holds.
#[derive(Debug, Default)]
pub struct World {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    around: HashMap<Key, Arc<Around>>,
    versions: HashMap<Referred, HashMap<Place, Version>>,
    users: HashMap<(Referred, Place), BTreeSet<Key>>,
    uses: HashMap<Key, Names>,
}

impl World {
    /// What is around a supervisor.
    pub fn around(&self, key: &Key) -> Arc<Around> {
        self.lock().around.get(key).cloned().unwrap_or_default()
    }

    /// The version of an object that can be referred to; none if it is not there.
    pub fn version(&self, kind: Referred, namespace: &str, name: &str) -> Option<Version> {
        let place = (namespace.to_owned(), name.to_owned());
        self.lock().versions.get(&kind)?.get(&place).cloned()
    }

    /// Says what a supervisor refers to, so that it is looked at again when that changes.
    pub fn uses(&self, key: &Key, names: Names) {
        let mut inner = self.lock();
        if inner.uses.get(key) == Some(&names) {
            return;
        }
        inner.unuse(key);
        for user in places(key, &names) {
            inner.users.entry(user).or_default().insert(key.clone());
        }
        inner.uses.insert(key.clone(), names);
    }

    /// Forgets a supervisor that is gone. What is around it goes with the watches.
    pub fn forget(&self, key: &Key) {
        self.lock().unuse(key);
    }

    /// What is known of an object now, for [`Self::wrote`].
    pub fn known(&self, key: &Key, kind: Kind, name: &str) -> Known {
        Known::of(self.lock().around.get(key).map(Arc::as_ref), kind, name)
    }

    /// Takes in what the API server answered to a write of ours, so that the next pass knows of it before the watch does;
    /// but not if the watch has brought anything since what was known `before` the write: that may be newer than the
    /// answer, and nobody would tell it again.
    pub fn wrote(&self, key: &Key, child: &Child, workload: Option<Workload>, before: &Known) {
        let mut inner = self.lock();
        let now = Known::of(inner.around.get(key).map(Arc::as_ref), child.kind, &child.name);
        if now != *before {
            return;
        }
        let seen = match workload {
            Some(workload) => Seen::Deployment(child.clone(), workload),
            None => Seen::Child(child.clone()),
        };
        inner.around_mut(key).put(seen);
    }

    /// Takes in since when an object only finishes what it began.
    pub fn marked(&self, key: &Key, kind: Kind, name: &str, since: Option<&str>) {
        let mut inner = self.lock();
        let around = inner.around.get_mut(key).map(Arc::make_mut);
        if let Some(child) = around.and_then(|around| around.children.get_mut(&(kind, name.to_owned()))) {
            Arc::make_mut(child).draining_since = since.map(str::to_owned);
        }
    }

    /// Takes in that a pod was told of an epoch.
    pub fn woke(&self, key: &Key, pod: &str, epoch: &str) {
        let mut inner = self.lock();
        let around = inner.around.get_mut(key).map(Arc::make_mut);
        if let Some(pod) = around.and_then(|around| around.pods.get_mut(pod)) {
            Arc::make_mut(pod).epoch = Some(epoch.to_owned());
        }
    }

    /// Takes an object in; says whether that is news.
    fn put(&self, key: &Key, seen: Seen) -> bool {
        self.lock().around_mut(key).put(seen)
    }

    /// Takes an object out; says whether it was there.
    fn remove(&self, key: &Key, kind: Kind, name: &str) -> bool {
        let mut inner = self.lock();
        let Some(around) = inner.around.get_mut(key).map(Arc::make_mut) else { return false };
        let was = around.remove(kind, name);
        if around.is_empty() {
            inner.around.remove(key);
        }
        was
    }

    /// Takes out every object of the kind in the scope that is not among those that were listed; whose they were.
    fn retain(&self, kind: Kind, scope: Option<&str>, listed: &HashSet<(Key, String)>) -> Vec<Key> {
        let mut inner = self.lock();
        let mut touched = Vec::new();
        for (key, around) in &mut inner.around {
            if scope.is_some_and(|scope| scope != key.namespace) {
                continue;
            }
            let gone: Vec<String> =
                around.names(kind).filter(|name| !listed.contains(&(key.clone(), name.clone()))).collect();
            if !gone.is_empty() {
                touched.push(key.clone());
            }
            for name in gone {
                Arc::make_mut(around).remove(kind, &name);
            }
        }
        inner.around.retain(|_, around| !around.is_empty());
        touched
    }

    /// Takes the version of an object that can be referred to in, or out; who refers to it, if that is news.
    fn put_version(&self, kind: Referred, place: &Place, version: Option<&Version>) -> Vec<Key> {
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

    /// Takes out every version in the scope that was not listed; who referred to those.
    fn retain_versions(&self, kind: Referred, scope: Option<&str>, listed: &HashSet<Place>) -> Vec<Key> {
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
    fn around_mut(&mut self, key: &Key) -> &mut Around {
        Arc::make_mut(self.around.entry(key.clone()).or_default())
    }

    fn unuse(&mut self, key: &Key) {
        let Some(names) = self.uses.remove(key) else { return };
        for place in places(key, &names) {
            if let Some(users) = self.users.get_mut(&place) {
                users.remove(key);
                if users.is_empty() {
                    self.users.remove(&place);
                }
            }
        }
    }
}

fn places(key: &Key, names: &Names) -> Vec<(Referred, Place)> {
    let place = |name: &String| (key.namespace.clone(), name.clone());
    let maps = names.config_maps.iter().map(|name| (Referred::ConfigMap, place(name)));
    let secrets = names.secrets.iter().map(|name| (Referred::Secret, place(name)));
    maps.chain(secrets).collect()
}

/// An extract of an object, of whatever kind.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Child(Child),
    Deployment(Child, Workload),
    Pod(String, Box<Pod>),
}

impl Around {
    fn put(&mut self, seen: Seen) -> bool {
        match seen {
            Seen::Child(child) => self.put_child(child),
            Seen::Deployment(child, workload) => {
                let name = child.name.clone();
                let news = self.put_child(child);
                put(&mut self.workloads, name, workload) || news
            }
            Seen::Pod(name, pod) => put(&mut self.pods, name, *pod),
        }
    }

    fn put_child(&mut self, child: Child) -> bool {
        put(&mut self.children, (child.kind, child.name.clone()), child)
    }

    fn remove(&mut self, kind: Kind, name: &str) -> bool {
        if kind == Kind::Pod {
            return self.pods.remove(name).is_some();
        }
        if kind == Kind::Deployment {
            self.workloads.remove(name);
        }
        self.children.remove(&(kind, name.to_owned())).is_some()
    }

    fn names(&self, kind: Kind) -> Box<dyn Iterator<Item = String> + '_> {
        if kind == Kind::Pod {
            return Box::new(self.pods.keys().cloned());
        }
        let of_kind = move |(found, _): &&(Kind, String)| *found == kind;
        Box::new(self.children.keys().filter(of_kind).map(|(_, name)| name.clone()))
    }

    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.pods.is_empty()
    }
}

/// Puts in what is news; says whether it is.
fn put<K: Ord, V: PartialEq>(map: &mut BTreeMap<K, Arc<V>>, key: K, value: V) -> bool {
    let is_known = map.get(&key).is_some_and(|known| **known == value);
    if !is_known {
        map.insert(key, Arc::new(value));
    }
    !is_known
}

#[cfg(test)]
#[path = "world_tests.rs"]
mod tests;

#[cfg(test)]
mod extract_tests;
