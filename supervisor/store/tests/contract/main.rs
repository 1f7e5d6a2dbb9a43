//! The rules that every store keeps. Each rule runs against a fresh store of each backend.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod conversations;
mod logs;
mod pruning;
mod pushes;
#[path = "../samples/mod.rs"]
mod samples;
mod tasks;

/// One test for each rule. The argument makes an empty store: a value that dereferences to `dyn Store`.
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
            filters_combine,
            ids_are_bounded,
            lists_are_ordered_and_paged,
            lists_may_begin_at_a_time,
            tasks_are_replaced,
            the_backend_is_healthy,
        }
    };
    ($fresh:expr, $module:ident: $($rule:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                let fresh = $fresh;
                crate::$module::$rule(&*fresh).await;
            }
        )*
    };
}

mod memory {
    use caipe_store::{MemoryStore, Store};

    store_contract!(Box::new(MemoryStore::new()) as Box<dyn Store>);
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

    store_contract!(Fresh::new());
}
