//! The rules that every store keeps. Each rule runs against a fresh store of each backend.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod controls;
mod conversations;
mod copies;
mod facts;
mod following;
mod leases;
mod logs;
mod pruning;
mod pushes;
#[path = "../samples/mod.rs"]
mod samples;
mod tasks;

use std::sync::Arc;

#[cfg(feature = "mongodb")]
use caipe_fixtures::mongodb::MongodbServer;
use caipe_fixtures::redis::{RedisCluster, RedisServer};
use caipe_store::{EncryptedStore, Keyring, Store, Transfer};
use tempfile::TempDir;

/// Where the data of a store is, which is removed with it.
enum Place {
    Memory,
    Directory(#[expect(dead_code, reason = "removed when dropped")] TempDir),
    Redis(RedisServer),
    #[cfg(feature = "mongodb")]
    Mongodb(MongodbServer),
    /// A cluster that all tests share: the node that has the keys, and how they begin.
    Cluster {
        node: String,
        prefix: String,
        _cluster: Arc<RedisCluster>,
    },
}

/// An empty store and its place.
struct Fresh(Arc<dyn Store>, Place);

/// An empty store that no supervisor serves, and its place.
struct Alone(Arc<dyn Transfer>, #[expect(dead_code, reason = "removed when dropped")] Place);

/// The store with encrypted values.
async fn encrypted(store: Arc<dyn Transfer>) -> Arc<dyn Store> {
    let keys = Keyring::parse("test:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    Arc::new(EncryptedStore::open(store, keys).await.unwrap())
}

/// One test for each rule. The argument makes a [`Fresh`].
macro_rules! store_contract {
    ($fresh:expr) => {
        store_contract! { $fresh, conversations:
            a_list_is_cut_and_extended,
            an_unknown_conversation_is_none,
            deep_values_come_back,
            huge_values_are_refused,
            large_states_come_back,
            nested_runs_come_back_and_go,
            unicode_comes_back,
        }
        store_contract! { $fresh, controls:
            a_mailbox_is_bounded,
            control_messages_act_once_and_in_order,
            control_messages_go_with_their_task,
            the_outbox_keeps_an_entry_until_it_is_done,
            the_owner_is_woken,
        }
        store_contract! { $fresh, facts:
            facts_are_those_of_one_owner,
            facts_are_replaced_and_removed,
            facts_expire,
            facts_are_bounded,
            facts_stay_when_conversations_go,
        }
        store_contract! { $fresh, shared following:
            a_follower_ends_with_the_run,
            a_follower_that_stops_in_between_continues_there,
            a_reader_that_stops_waiting_leaves_nothing,
            followers_miss_nothing_and_repeat_nothing,
        }
        store_contract! { $fresh, timed leases:
            renewal_extends_a_lease,
            a_new_task_has_an_owner,
            a_turn_is_for_one_task_under_way,
            abandoned_tasks_are_those_that_nobody_runs,
            a_claim_has_one_owner_until_it_ends,
            a_released_lease_is_free,
            an_owner_takes_its_own_lease_back,
            other_owners_wait_for_the_end_of_the_term,
        }
        store_contract! { $fresh, logs:
            a_commit_that_is_repeated_changes_nothing,
            a_number_is_never_used_again,
            a_refused_commit_leaves_nothing,
            an_earlier_owner_is_refused,
            concurrent_tasks_do_not_mix,
            events_are_paged_exactly,
            events_keep_their_times,
            events_need_a_task,
            of_two_writers_one_is_refused,
            the_cursor_may_be_anywhere,
        }
        store_contract! { $fresh, pruning:
            conversations_go_when_idle,
            nothing_goes_without_a_policy,
            tasks_go_when_ended_and_old,
        }
        store_contract! { $fresh, pushes:
            a_push_needs_a_task_and_a_small_body,
            pending_pushes_are_those_not_done,
            pushes_are_replaced_and_deleted,
            pushes_go_with_their_task,
        }
        store_contract! { $fresh, tasks:
            a_conversation_belongs_to_the_principal_of_its_first_task,
            filters_combine,
            ids_are_bounded,
            lists_are_ordered_and_paged,
            lists_may_begin_at_a_time,
            tasks_are_replaced,
            the_backend_is_healthy,
        }
    };
    // The rule gets a store that no supervisor serves.
    ($fresh:expr, alone $module:ident: $($rule:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                let alone = $fresh;
                crate::$module::$rule(&alone.0).await;
            }
        )*
    };
    // The rule gets the shared store.
    ($fresh:expr, shared $module:ident: $($rule:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                let fresh = $fresh;
                crate::$module::$rule(&fresh.0).await;
            }
        )*
    };
    // With a clock that the rule moves.
    ($fresh:expr, timed $module:ident: $($rule:ident,)*) => {
        $(
            #[tokio::test]
            async fn $rule() {
                let fresh = $fresh;
                let clock = crate::$module::Clock::of(&fresh.1);
                crate::$module::$rule(&*fresh.0, &clock).await;
            }
        )*
    };
    ($fresh:expr, $module:ident: $($rule:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                let fresh = $fresh;
                crate::$module::$rule(&*fresh.0).await;
            }
        )*
    };
}

/// One test for each rule of copies.
macro_rules! copies_contract {
    ($fresh:expr) => {
        store_contract! { $fresh, alone copies:
            a_copy_has_everything,
            content_is_never_replaced,
            copied_facts_are_those_of_their_owners,
            facts_are_never_replaced,
            an_interrupted_import_continues,
            each_difference_is_reported,
        }
    };
}

mod memory {
    use std::sync::Arc;

    use caipe_store::MemoryStore;

    use crate::{Alone, Fresh, Place};

    store_contract!(Fresh(Arc::new(MemoryStore::new()), Place::Memory));
    copies_contract!(Alone(Arc::new(MemoryStore::new()), Place::Memory));
}

mod sqlite {
    use std::sync::Arc;

    use caipe_store::SqliteStore;

    use crate::{Alone, Fresh, Place};

    fn open() -> (Arc<SqliteStore>, Place) {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&directory.path().join("caipe.db")).unwrap();
        (Arc::new(store), Place::Directory(directory))
    }

    fn fresh() -> Fresh {
        let (store, place) = open();
        Fresh(store, place)
    }

    fn alone() -> Alone {
        let (store, place) = open();
        Alone(store, place)
    }

    store_contract!(fresh());
    copies_contract!(alone());
}

/// SQLite and Redis with encrypted values.
mod encrypted_sqlite {
    use std::sync::Arc;

    use caipe_store::SqliteStore;

    use crate::{Fresh, Place, encrypted};

    async fn fresh() -> Fresh {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&directory.path().join("caipe.db")).unwrap();
        Fresh(encrypted(Arc::new(store)).await, Place::Directory(directory))
    }

    store_contract!(fresh().await);
}

mod encrypted_redis {
    use std::sync::Arc;

    use caipe_fixtures::redis::RedisServer;
    use caipe_store::{RedisOptions, RedisStore};

    use crate::{Fresh, Place, encrypted};

    async fn fresh() -> Fresh {
        let server = RedisServer::start(&[]).unwrap();
        let options =
            RedisOptions { url: server.url(), database: "caipe".to_owned(), ..RedisOptions::default() };
        let store = RedisStore::open(&options).unwrap();
        Fresh(encrypted(Arc::new(store)).await, Place::Redis(server))
    }

    store_contract!(fresh().await);
}

mod redis_store {
    use std::sync::Arc;

    use caipe_fixtures::redis::RedisServer;
    use caipe_store::{RedisOptions, RedisStore};

    use crate::{Alone, Fresh, Place};

    fn options(server: &RedisServer) -> RedisOptions {
        RedisOptions { url: server.url(), database: "caipe".to_owned(), ..RedisOptions::default() }
    }

    fn fresh() -> Fresh {
        let server = RedisServer::start(&[]).unwrap();
        let store = RedisStore::open(&options(&server)).unwrap();
        Fresh(Arc::new(store), Place::Redis(server))
    }

    fn alone() -> Alone {
        let server = RedisServer::start(&[]).unwrap();
        let store = RedisStore::open_alone(&options(&server)).unwrap();
        Alone(Arc::new(store), Place::Redis(server))
    }

    store_contract!(fresh());
    copies_contract!(alone());
}

#[cfg(feature = "mongodb")]
mod mongodb_store {
    use std::sync::Arc;

    use caipe_fixtures::mongodb::MongodbServer;
    use caipe_store::{MongodbOptions, MongodbStore};

    use crate::{Alone, Fresh, Place};

    fn options(server: &MongodbServer) -> MongodbOptions {
        let (uri, database) = (server.uri(), "team_caipe".to_owned());
        MongodbOptions { uri, database, ..MongodbOptions::default() }
    }

    fn fresh() -> Fresh {
        let server = MongodbServer::start(&[]).unwrap();
        let store = MongodbStore::open(&options(&server)).unwrap();
        Fresh(Arc::new(store), Place::Mongodb(server))
    }

    fn alone() -> Alone {
        let server = MongodbServer::start(&[]).unwrap();
        let store = MongodbStore::open_alone(&options(&server)).unwrap();
        Alone(Arc::new(store), Place::Mongodb(server))
    }

    store_contract!(fresh());
    copies_contract!(alone());
}

/// A cluster of three nodes, which the tests share.
mod redis_cluster {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex, Weak};

    use caipe_fixtures::redis::RedisCluster;
    use caipe_store::{RedisOptions, RedisStore};

    use crate::{Alone, Fresh, Place};

    /// The cluster while a test uses it.
    static CLUSTER: Mutex<Weak<RedisCluster>> = Mutex::new(Weak::new());

    fn cluster() -> Arc<RedisCluster> {
        let mut running = CLUSTER.lock().unwrap();
        running.upgrade().unwrap_or_else(|| {
            let started = Arc::new(RedisCluster::start().unwrap());
            *running = Arc::downgrade(&started);
            started
        })
    }

    /// Each test has keys of its own, at one of the nodes.
    fn place() -> (RedisOptions, Place) {
        static TESTS: AtomicU32 = AtomicU32::new(0);
        let cluster = cluster();
        let database = format!("test{}", TESTS.fetch_add(1, Ordering::Relaxed));
        let prefix = format!("{{{database}}}");
        let (node, _) = cluster.nodes_of(&format!("{prefix}:format")).unwrap();
        let node = node.url();
        let options = RedisOptions { url: cluster.url(), database, ..RedisOptions::default() };
        (options, Place::Cluster { node, prefix, _cluster: cluster })
    }

    fn fresh() -> Fresh {
        let (options, place) = place();
        Fresh(Arc::new(RedisStore::open(&options).unwrap()), place)
    }

    fn alone() -> Alone {
        let (options, place) = place();
        Alone(Arc::new(RedisStore::open_alone(&options).unwrap()), place)
    }

    store_contract!(fresh());
    copies_contract!(alone());
}
