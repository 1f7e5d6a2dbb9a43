//! Decides whether new supervisor pods start before old ones stop. Pure.

use caipe_crds::digest::sha256_hex;
use caipe_crds::rendered::Store;

use crate::cache::Workload;

/// The identity of a store that several pods can use at a time; `None` if only one pod can.
pub fn shared_store(store: &Store) -> Option<String> {
    match store {
        Store::Redis { database, .. } => Some(sha256_hex(database, 32)),
        Store::Mongodb { database, .. } => Some(sha256_hex(&format!("mongodb {database}"), 32)),
        Store::Sqlite {} | Store::Memory {} => None,
    }
}

/// Whether pods overlap during a rollout. Pods with different stores never do, because each would serve other
/// conversations: after a change of the store, all old pods stop first, until the rollout has ended.
pub fn overlaps(store: &Store, deployed: Option<&Workload>) -> bool {
    let Some(wanted) = shared_store(store) else { return false };
    deployed.is_none_or(|workload| {
        workload.store.as_ref().is_some_and(|store| store.is(&wanted))
            && (workload.overlaps || workload.rolled_out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_overlap_only_where_all_of_them_use_one_store() {
        let redis = |database: &str| Store::Redis {
            database: database.to_owned(),
            ttl_minutes: None,
            required: false,
            secrets_dir: None,
        };
        let deployed = |store: Option<&Store>, overlaps, rolled_out| {
            let store = store.and_then(shared_store).map(|store| store.as_str().into());
            Some(Workload { rolled_out, overlaps, store, ..Workload::default() })
        };
        let (one, other) = (redis("a"), redis("b"));
        for (case, store, deployed, expected) in [
            ("a file", &Store::Sqlite {}, None, false),
            ("the first pods", &one, None, true),
            ("from a file", &one, deployed(None, false, true), false),
            ("from another database", &one, deployed(Some(&other), true, true), false),
            ("the pods with the new store start", &one, deployed(Some(&one), false, false), false),
            ("they have started", &one, deployed(Some(&one), false, true), true),
            ("a later rollout", &one, deployed(Some(&one), true, false), true),
            ("back to a file", &Store::Sqlite {}, deployed(Some(&one), true, true), false),
        ] {
            assert_eq!(overlaps(store, deployed.as_ref()), expected, "{case}");
        }
    }
}
