//! Reservations of object names: `platform-a` is the Deployment of supervisor `platform-a`, and of agent `a` of
//! `platform`.
//!
//! The first supervisor with an object of a name owns it. Server-side apply cannot enforce this: all supervisors use
//! the same field manager, and an object may be created between the read and the apply.

use super::Cache;
use crate::key::Key;
use crate::kind::Kind;

/// The exclusive right of a supervisor to create an object of this name, until it is dropped.
#[derive(Debug)]
pub struct NameReservation<'a> {
    cache: &'a Cache,
    place: Place,
}

pub(super) type Place = (Kind, String, String);

impl Cache {
    /// Reserves a name.
    ///
    /// # Errors
    /// The supervisor that has reserved it.
    pub fn reserve(&self, key: &Key, kind: Kind, name: &str) -> Result<NameReservation<'_>, Key> {
        let place: Place = (kind, key.namespace().to_owned(), name.to_owned());
        let reservations = &mut self.lock().reservations;
        if let Some(other) = reservations.get(&place).filter(|other| *other != key) {
            return Err(other.clone());
        }
        reservations.insert(place.clone(), key.clone());
        Ok(NameReservation { cache: self, place })
    }

    /// Removes an object from all supervisors but its owner; returns the others that had it.
    pub(super) fn take_from_others(&self, key: &Key, kind: Kind, name: &str) -> Vec<Key> {
        let mut inner = self.lock();
        let mut others = candidate_owners(key.namespace(), name, |other| {
            inner.observed.get_key_value(other).map(|(found, _)| found.clone())
        });
        others.retain(|other| other != key && inner.change(other, |observed| observed.remove(kind, name)));
        others
    }
}

impl Drop for NameReservation<'_> {
    fn drop(&mut self) {
        self.cache.lock().reservations.remove(&self.place);
    }
}

/// The supervisors that an object may belong to: their name is a prefix of the object's.
fn candidate_owners(namespace: &str, name: &str, known: impl Fn(&str) -> Option<Key>) -> Vec<Key> {
    let text = format!("{namespace}/{name}");
    let ends = name.match_indices(['-', '.']).map(|(at, _)| namespace.len() + 1 + at).chain([text.len()]);
    ends.filter_map(|end| known(text.get(..end)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Child, Extract, ObservedState};
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("team", name)
    }

    #[test]
    fn a_name_is_claimed_by_one_at_a_time() {
        let cache = Cache::default();
        let (a, b) = (key("platform"), key("platform-a"));
        let reserve = cache.reserve(&a, Kind::Deployment, "platform-a").unwrap();
        assert_eq!(cache.reserve(&b, Kind::Deployment, "platform-a").unwrap_err(), a);
        assert!(cache.reserve(&b, Kind::Service, "platform-a").is_ok(), "another kind");
        assert!(cache.reserve(&Key::new("other", "platform-a"), Kind::Deployment, "platform-a").is_ok());
        drop(reserve);
        assert!(cache.reserve(&b, Kind::Deployment, "platform-a").is_ok());
    }

    #[test]
    fn an_object_with_a_new_owner_leaves_the_old_one() {
        let cache = Cache::default();
        let child = || Extract::Child(Child::bare(Kind::Service, "a-b-c"));
        for name in ["a", "a-b", "a-b-c", "a-b-c-d", "b"] {
            cache.put(&key(name), child());
        }
        let mut others = cache.take_from_others(&key("a-b"), Kind::Service, "a-b-c");
        others.sort();
        assert_eq!(others, [key("a"), key("a-b-c")]);
        assert_eq!(*cache.observed(&key("a")), ObservedState::default());
        assert_eq!(cache.observed(&key("a-b")).children.len(), 1);
        assert!(cache.take_from_others(&key("a-b"), Kind::Service, "a-b-c").is_empty());
    }
}
