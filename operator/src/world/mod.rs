//! What the cluster holds, as last seen: small extracts of the objects around each supervisor, kept up to date by watches.
//!
//! Nothing here waits or talks to anybody: watches feed it ([`watch`]), passes read it.

mod child;
mod claim;
mod deployment;
mod dirty;
mod kind;
mod owned;
mod packed;
mod pod;
pub mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use child::Child;
pub use claim::Claim;
pub use deployment::{SeenDeployment, Workload};
pub use dirty::Dirty;
pub use kind::Kind;
pub use owned::Owned;
use packed::Packed;
pub use pod::{Pod, Trouble};

use crate::supervisor::key::Key;
use crate::supervisor::references::{Names, Version};

/// What is around one supervisor.
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
    fn of(around: &Around, kind: Kind, name: &str) -> Self {
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
    around: HashMap<Key, Packed>,
    claims: HashMap<claim::Place, Key>,
    versions: HashMap<Referred, HashMap<Place, Version>>,
    users: HashMap<(Referred, Place), BTreeSet<Key>>,
    uses: HashMap<Key, Names>,
}

impl World {
    /// What is around a supervisor.
    pub fn around(&self, key: &Key) -> Arc<Around> {
        Arc::new(self.lock().around(key))
    }

    /// The version of an object that can be referred to; none if it is not there.
    pub fn version(&self, kind: Referred, namespace: &str, name: &str) -> Option<Version> {
        let place = (namespace.to_owned(), name.to_owned());
        self.lock().versions.get(&kind)?.get(&place).cloned()
    }

    /// Says what a supervisor refers to, so that it is looked at again when that changes.
    pub fn uses(&self, key: &Key, names: Names) {
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

    /// Forgets a supervisor that is gone. What is around it goes with the watches.
    pub fn forget(&self, key: &Key) {
        self.lock().unuse(key);
    }

    /// What is known of an object now, for [`Self::wrote`].
    pub fn known(&self, key: &Key, kind: Kind, name: &str) -> Known {
        Known::of(&self.lock().around(key), kind, name)
    }

    /// Takes in what the API server answered to a write of ours, so that the next pass knows of it before the watch does;
    /// but not if the watch has brought anything since what was known `before` the write: that may be newer than the
    /// answer, and nobody would tell it again.
    pub fn wrote(&self, key: &Key, child: &Child, workload: Option<Workload>, before: &Known) {
        let seen = match workload {
            Some(workload) => Seen::Deployment(child.clone(), workload),
            None => Seen::Child(child.clone()),
        };
        self.lock().change(key, |around| {
            let is_unchanged = Known::of(around, child.kind, &child.name) == *before;
            is_unchanged && around.put(seen)
        });
    }

    /// Takes in since when an object only finishes what it began.
    pub fn marked(&self, key: &Key, kind: Kind, name: &str, since: Option<&str>) {
        self.lock().change(key, |around| {
            let Some(child) = around.children.get_mut(&(kind, name.to_owned())) else { return false };
            Arc::make_mut(child).draining_since = since.map(str::to_owned);
            true
        });
    }

    /// Takes in that a pod was told of an epoch.
    pub fn woke(&self, key: &Key, pod: &str, epoch: &str) {
        self.lock().change(key, |around| {
            let Some(pod) = around.pods.get_mut(pod) else { return false };
            Arc::make_mut(pod).epoch = Some(epoch.to_owned());
            true
        });
    }

    /// Takes an object in; says whether that is news.
    fn put(&self, key: &Key, seen: Seen) -> bool {
        self.lock().change(key, |around| around.put(seen))
    }

    /// Takes an object out; says whether it was there.
    fn remove(&self, key: &Key, kind: Kind, name: &str) -> bool {
        self.lock().change(key, |around| around.remove(kind, name))
    }

    /// Takes out every object of the kind in the scope that is not among those that were listed; whose they were.
    fn retain(&self, kind: Kind, scope: Option<&str>, listed: &HashSet<(Key, String)>) -> Vec<Key> {
        let mut inner = self.lock();
        let within = |key: &&Key| scope.is_none_or(|scope| scope == key.namespace());
        let mut keys: Vec<Key> = inner.around.keys().filter(within).cloned().collect();
        keys.retain(|key| {
            let is_listed = |name: &String| listed.contains(&(key.clone(), name.clone()));
            inner.change(key, |around| around.retain(kind, is_listed))
        });
        keys
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
    fn around(&self, key: &Key) -> Around {
        self.around.get(key).map(Packed::open).unwrap_or_default()
    }

    /// Changes what is around a supervisor; says whether anything was changed, as the change itself says.
    fn change(&mut self, key: &Key, change: impl FnOnce(&mut Around) -> bool) -> bool {
        let mut around = self.around(key);
        if !change(&mut around) {
            return false;
        }
        if around.is_empty() {
            self.around.remove(key);
        } else {
            self.around.insert(key.clone(), Packed::new(&around));
        }
        true
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
    let place = |name: &String| (key.namespace().to_owned(), name.clone());
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

    /// Takes out every object of the kind but those to be kept; says whether there was one.
    fn retain(&mut self, kind: Kind, keep: impl Fn(&String) -> bool) -> bool {
        let gone: Vec<String> = self.names(kind).filter(|name| !keep(name)).collect();
        for name in &gone {
            self.remove(kind, name);
        }
        !gone.is_empty()
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
