//! A map with few entries.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::mem;

/// A map in one sorted allocation without spare capacity. A B-tree allocates room for eleven entries, and a hash map for
/// at least four.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactMap<K, V>(Box<[(K, V)]>);

impl<K, V> Default for CompactMap<K, V> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<K: Ord, V> CompactMap<K, V> {
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_by(|known| known.borrow().cmp(key))
    }

    /// The value of a key, by the order of the keys relative to it.
    pub fn get_by(&self, order: impl FnMut(&K) -> Ordering) -> Option<&V> {
        let at = self.position(order).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    pub fn get_mut_by(&mut self, order: impl FnMut(&K) -> Ordering) -> Option<&mut V> {
        let at = self.position(order).ok()?;
        self.0.get_mut(at).map(|(_, value)| value)
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.get_mut_by(|known| known.borrow().cmp(key))
    }

    /// Inserts a value; returns the one that it replaces.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.position(|known| known.cmp(&key)) {
            Ok(at) => self.0.get_mut(at).map(|(_, known)| mem::replace(known, value)),
            Err(at) => {
                let mut entries = mem::take(&mut self.0).into_vec();
                entries.reserve_exact(1);
                entries.insert(at, (key, value));
                self.0 = entries.into_boxed_slice();
                None
            }
        }
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.remove_by(|known| known.borrow().cmp(key))
    }

    pub fn remove_by(&mut self, order: impl FnMut(&K) -> Ordering) -> Option<V> {
        let at = self.position(order).ok()?;
        let mut entries = mem::take(&mut self.0).into_vec();
        let (_, value) = entries.remove(at);
        self.0 = entries.into_boxed_slice();
        Some(value)
    }

    /// The entries by their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn position(&self, mut order: impl FnMut(&K) -> Ordering) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| order(known))
    }
}

/// Of several entries with the same key, the last one stays.
impl<K: Ord, V> FromIterator<(K, V)> for CompactMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self(std::collections::BTreeMap::from_iter(entries).into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(changes in prop::collection::vec((0_u8..8, prop::option::of(any::<u8>())), 0..40)) {
            let (mut map, mut expected) = (CompactMap::default(), BTreeMap::new());
            for (key, change) in changes {
                if let Some(value) = change {
                    prop_assert_eq!(map.insert(key, value), expected.insert(key, value));
                } else {
                    prop_assert_eq!(map.remove(&key), expected.remove(&key));
                }
                prop_assert!(map.iter().eq(&expected));
                prop_assert_eq!((map.len(), map.is_empty()), (expected.len(), expected.is_empty()));
                prop_assert_eq!(map.get(&key), expected.get(&key));
                prop_assert_eq!(&map, &expected.clone().into_iter().collect());
            }
        }
    }
}
