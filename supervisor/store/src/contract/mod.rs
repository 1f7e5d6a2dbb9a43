//! The rules that every backend keeps, as tests. [`store_contract!`](crate::store_contract) runs them all over
//! fresh stores of one backend.

// A rule that is broken panics: these are the bodies of tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

mod conversations;
mod logs;
mod pruning;
mod pushes;
pub mod samples;
mod tasks;

pub use conversations::{
    a_snapshot_replaces_the_appends_before_it, an_append_needs_a_snapshot, an_unknown_conversation_is_none,
    appends_come_back_in_order, deep_values_come_back, huge_values_are_refused, large_states_come_back,
    unicode_comes_back,
};
pub use logs::{
    a_gap_or_a_repeat_is_refused, a_refused_commit_leaves_nothing, concurrent_tasks_do_not_mix,
    events_are_paged_exactly, events_keep_their_times, events_need_a_task, of_two_writers_one_is_refused,
    the_cursor_may_be_anywhere,
};
pub use pruning::{conversations_go_when_idle, nothing_goes_without_a_policy, tasks_go_when_ended_and_old};
pub use pushes::{
    a_push_needs_a_task_and_a_small_body, pending_pushes_are_those_not_done, pushes_are_replaced_and_deleted,
    pushes_go_with_their_task,
};
pub use tasks::{
    filters_combine, ids_are_bounded, lists_are_ordered_and_paged, lists_may_begin_at_a_time,
    tasks_are_replaced, the_backend_is_healthy,
};

/// One test per rule. The argument makes a fresh, empty store: anything that derefs to `dyn Store` as a value
/// with its own clean-up, by an expression that is evaluated inside a Tokio runtime.
#[macro_export]
macro_rules! store_contract {
    ($fresh:expr) => {
        $crate::store_contract! { @rules $fresh;
            a_gap_or_a_repeat_is_refused,
            a_refused_commit_leaves_nothing,
            a_snapshot_replaces_the_appends_before_it,
            a_push_needs_a_task_and_a_small_body,
            an_append_needs_a_snapshot,
            an_unknown_conversation_is_none,
            appends_come_back_in_order,
            concurrent_tasks_do_not_mix,
            conversations_go_when_idle,
            deep_values_come_back,
            events_are_paged_exactly,
            events_keep_their_times,
            events_need_a_task,
            filters_combine,
            huge_values_are_refused,
            ids_are_bounded,
            large_states_come_back,
            lists_are_ordered_and_paged,
            lists_may_begin_at_a_time,
            nothing_goes_without_a_policy,
            of_two_writers_one_is_refused,
            pending_pushes_are_those_not_done,
            pushes_are_replaced_and_deleted,
            pushes_go_with_their_task,
            tasks_are_replaced,
            tasks_go_when_ended_and_old,
            the_backend_is_healthy,
            the_cursor_may_be_anywhere,
            unicode_comes_back,
        }
    };
    (@rules $fresh:expr; $($rule:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                let fresh = $fresh;
                $crate::contract::$rule(&*fresh).await;
            }
        )*
    };
}
