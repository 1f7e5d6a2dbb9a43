//! The watched resources of a scope. Without clock and network: events of the watch are inputs.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kube::Resource;
use kube::runtime::watcher::Event;

use crate::compressed_supervisor::{CompressedSupervisor, WatchedSupervisor};
use crate::key::Key;
use crate::labels;

/// The resources, compressed.
#[derive(Debug, Default)]
pub(super) struct SupervisorStore {
    resources: HashMap<Key, Stored>,
    /// The resources of an unfinished list.
    listing: HashSet<Key>,
    is_listed: bool,
}

#[derive(Debug)]
struct Stored {
    object: Arc<CompressedSupervisor>,
    /// A hash of the parts that need a reconcile.
    version: u64,
}

/// The effect of an event of the watch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The event needs no reconcile.
    None,
    /// The resource is new, or a part of it has changed that needs a reconcile.
    Reconcile(Key),
    Deleted(Key),
    /// The list is complete, and the resources that it lacks are removed.
    Listed,
}

impl SupervisorStore {
    /// Takes in an event.
    pub(super) fn apply(&mut self, event: Event<WatchedSupervisor>) -> Change {
        match event {
            Event::Init => {
                self.listing.clear();
                Change::None
            }
            Event::InitApply(object) => {
                self.listing.insert(Key::of(&object));
                self.put(object)
            }
            Event::Apply(object) => self.put(object),
            Event::Delete(object) => {
                let key = Key::of(&object);
                self.resources.remove(&key);
                Change::Deleted(key)
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listing);
                self.resources.retain(|key, _| listed.contains(key));
                self.is_listed = true;
                Change::Listed
            }
        }
    }

    fn put(&mut self, object: WatchedSupervisor) -> Change {
        let (key, version) = (Key::of(&object), version(&object));
        let stored = Stored { object: Arc::new(object.into_compressed()), version };
        let before = self.resources.insert(key.clone(), stored);
        if before.is_some_and(|before| before.version == version) {
            return Change::None;
        }
        Change::Reconcile(key)
    }

    /// Whether the first list is complete.
    pub(super) const fn is_listed(&self) -> bool {
        self.is_listed
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<CompressedSupervisor>> {
        self.resources.get(key).map(|stored| &stored.object)
    }
}

/// The uid distinguishes a recreated resource.
fn version(object: &WatchedSupervisor) -> u64 {
    let mut hasher = DefaultHasher::new();
    let meta = object.meta();
    (&meta.uid, meta.generation, meta.deletion_timestamp.is_some(), labels::is_paused(meta))
        .hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(name: &str, generation: i64, resource_version: &str) -> WatchedSupervisor {
        let metadata = json!({
            "namespace": "team", "name": name, "uid": "u", "generation": generation,
            "resourceVersion": resource_version,
        });
        serde_json::from_value(json!({ "metadata": metadata, "spec": { "agents": [] } })).unwrap()
    }

    fn key(name: &str) -> Key {
        Key::new("team", name)
    }

    #[test]
    fn a_change_of_the_status_needs_no_reconcile() {
        let mut store = SupervisorStore::default();
        assert_eq!(store.apply(Event::Apply(resource("a", 1, "1"))), Change::Reconcile(key("a")));
        assert_eq!(store.apply(Event::Apply(resource("a", 1, "2"))), Change::None);
        let version = store.get(&key("a")).unwrap().open().unwrap().metadata.resource_version;
        assert_eq!(version.as_deref(), Some("2"), "but the newest version is stored");
        assert_eq!(store.apply(Event::Apply(resource("a", 2, "3"))), Change::Reconcile(key("a")));
        assert_eq!(store.apply(Event::Delete(resource("a", 2, "3"))), Change::Deleted(key("a")));
        assert!(store.get(&key("a")).is_none());
    }

    #[test]
    fn a_list_replaces_the_resources_when_it_is_complete() {
        let mut store = SupervisorStore::default();
        for name in ["a", "b"] {
            store.apply(Event::Apply(resource(name, 1, "1")));
        }
        assert!(!store.is_listed());
        // The first list fails halfway, and the second one lacks what it had.
        for name in ["b", "c"] {
            assert_eq!(store.apply(Event::Init), Change::None);
            store.apply(Event::InitApply(resource(name, 1, "1")));
            assert!(["a", "b", name].iter().all(|name| store.get(&key(name)).is_some()));
        }
        assert_eq!(store.apply(Event::InitDone), Change::Listed);
        let left = ["a", "b", "c"].map(|name| store.get(&key(name)).is_some());
        assert_eq!((left, store.is_listed()), ([false, false, true], true));
        store.apply(Event::Init);
        assert_eq!(store.apply(Event::InitApply(resource("c", 1, "1"))), Change::None, "it is unchanged");
    }
}
