//! Both backends keep the same rules.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod memory {
    use caipe_store::MemoryStore;

    caipe_store::store_contract!(Box::new(MemoryStore::new()) as Box<dyn caipe_store::Store>);
}

mod sqlite {
    use std::ops::Deref;

    use caipe_store::{SqliteStore, Store};
    use tempfile::TempDir;

    struct Fresh(SqliteStore, #[expect(dead_code, reason = "removed when dropped")] TempDir);

    impl Fresh {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            Self(SqliteStore::open(&directory.path().join("caipe.db")).unwrap(), directory)
        }
    }

    impl Deref for Fresh {
        type Target = dyn Store;

        fn deref(&self) -> &Self::Target {
            &self.0
        }
    }

    caipe_store::store_contract!(Fresh::new());
}
