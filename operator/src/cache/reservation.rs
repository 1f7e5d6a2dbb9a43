//! Names that supervisors want: `platform-a` is the Deployment of supervisor `platform-a`, and of agent `a` of `platform`.
//!
//! Whoever has an object of a name keeps it. Server-side apply cannot see to that alone: all supervisors have the same
//! field manager, and an object that is not there when it is looked for may be there when it is applied.

use super::{Cache, Kind, PackedState};
use crate::key::Key;

/// A name that one supervisor alone may make an object of, as long as this lives.
#[derive(Debug)]
pub struct NameReservation<'a> {
    cache: &'a Cache,
    place: Place,
}

/// Kind, namespace, and name of an object.
pub(super) type Place = (Kind, String, String);

impl Cache {
    /// Lays claim to a name.
    ///
    /// # Errors
    /// Who has claimed it.
    pub fn reserve(&self, key: &Key, kind: Kind, name: &str) -> Result<NameReservation<'_>, Key> {
        let place: Place = (kind, key.namespace().to_owned(), name.to_owned());
        let reservations = &mut self.lock().reservations;
        if let Some(other) = reservations.get(&place).filter(|other| *other != key) {
            return Err(other.clone());
        }
        reservations.insert(place.clone(), key.clone());
        Ok(NameReservation { cache: self, place })
    }

    /// Takes an object away from every supervisor but the one that it is of now; whose it was.
    pub(super) fn take_from_others(&self, key: &Key, kind: Kind, name: &str) -> Vec<Key> {
        let mut inner = self.lock();
        let mut others = candidate_owners(key.namespace(), name, |other| {
            inner.observed.get_key_value(other).map(|(found, _): (&Key, &PackedState)| found.clone())
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

/// The supervisors that objects of a name are made for: their name is where it begins.
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
    fn an_object_that_has_another_owner_now_is_around_that_one_alone() {
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
