//! Stores equal values once.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// The smallest size at which unused values are removed.
const LEAST: usize = 64;

/// A set of shared values.
#[derive(Debug)]
pub(crate) struct Interner<T: ?Sized>(Mutex<Known<T>>);

#[derive(Debug)]
struct Known<T: ?Sized> {
    values: HashSet<Arc<T>>,
    /// The size at which unused values are removed next.
    most: usize,
}

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Self(Mutex::new(Known { values: HashSet::new(), most: LEAST }))
    }
}

impl<T: ?Sized + Eq + Hash> Interner<T> {
    /// The stored value that equals this one; stores it if there is none.
    pub(crate) fn share(&self, value: impl Into<Arc<T>> + AsRef<T>) -> Arc<T> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.values.get(value.as_ref()) {
            return Arc::clone(found);
        }
        if known.values.len() >= known.most {
            known.values.retain(|value| Arc::strong_count(value) > 1);
            known.most = (2 * known.values.len()).max(LEAST);
        }
        let value: Arc<T> = value.into();
        known.values.insert(Arc::clone(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one() {
        let pool = Interner::<str>::default();
        let (a, b) = (pool.share("a".to_owned()), pool.share("b"));
        assert!(Arc::ptr_eq(&a, &pool.share("a")) && !Arc::ptr_eq(&a, &b));
        assert_eq!((&*a, &*b), ("a", "b"));
    }

    #[test]
    fn unused_values_are_removed() {
        let pool = Interner::<str>::default();
        let used = pool.share("used");
        for number in 0..100 * LEAST {
            pool.share(number.to_string());
        }
        assert!(pool.0.lock().unwrap().values.len() <= LEAST);
        assert!(Arc::ptr_eq(&used, &pool.share("used")));
    }
}
