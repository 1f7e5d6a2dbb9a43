//! Stores that outlive the process that uses them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(feature = "mongodb")]
use caipe_fixtures::mongodb::MongodbServer;
use caipe_fixtures::redis::RedisServer;
use caipe_store::{EncryptedStore, Keyring, MemoryStore, RedisOptions, RedisStore, Store, Transfer};
#[cfg(feature = "mongodb")]
use caipe_store::{MongodbOptions, MongodbStore};

const KEY: &str = "test:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Numbers the databases of a server, so that no two storages share one.
static DATABASES: AtomicUsize = AtomicUsize::new(0);

/// Where a store keeps its data.
#[derive(Clone)]
enum Place {
    Memory(Arc<MemoryStore>),
    Redis(RedisOptions),
    /// With the server, which stops with the last user.
    #[cfg(feature = "mongodb")]
    Mongodb(MongodbOptions, #[expect(dead_code, reason = "it stops when dropped")] Arc<MongodbServer>),
}

/// The data of a store, which each process opens for itself.
#[derive(Clone)]
pub(crate) struct Storage {
    place: Place,
    is_encrypted: bool,
}

/// What makes storages: a server with room for many of them, or the memory of the test.
pub(crate) enum StorageServer {
    Memory,
    Redis(RedisServer),
    /// A server for each storage, because all databases of the test server have the same collections.
    #[cfg(feature = "mongodb")]
    Mongodb,
}

impl fmt::Display for StorageServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Redis(_) => "redis",
            #[cfg(feature = "mongodb")]
            Self::Mongodb => "mongodb",
        })
    }
}

impl StorageServer {
    /// A new storage without data.
    pub(crate) fn storage(&self, is_encrypted: bool) -> Storage {
        let database = format!("test{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let place = match self {
            Self::Memory => Place::Memory(Arc::default()),
            Self::Redis(server) => {
                Place::Redis(RedisOptions { url: server.url(), database, ..RedisOptions::default() })
            }
            #[cfg(feature = "mongodb")]
            Self::Mongodb => {
                let server = Arc::new(MongodbServer::start(&[]).unwrap());
                let options = MongodbOptions { uri: server.uri(), database, ..MongodbOptions::default() };
                Place::Mongodb(options, server)
            }
        };
        Storage { place, is_encrypted }
    }
}

impl Storage {
    /// The store, with connections of its own. They live as long as the runtime of the caller.
    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        match &self.place {
            Place::Memory(store) => self.with_keys(store.clone()).await,
            Place::Redis(options) => self.with_keys(Arc::new(RedisStore::open(options).unwrap())).await,
            #[cfg(feature = "mongodb")]
            Place::Mongodb(options, _) => {
                self.with_keys(Arc::new(MongodbStore::open(options).unwrap())).await
            }
        }
    }

    async fn with_keys<S: Transfer + 'static>(&self, store: Arc<S>) -> Arc<dyn Store> {
        if !self.is_encrypted {
            return store;
        }
        let keys = Keyring::parse(KEY).unwrap();
        Arc::new(EncryptedStore::open(store, keys).await.unwrap())
    }
}
