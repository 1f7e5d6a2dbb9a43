use std::collections::BTreeMap;

use caipe_store::{Commit, Store, StoreError, TaskPhase};
use futures::future::join_all;

use crate::samples::{event, logged, recorded, saved, task, time_of};

async fn begin(store: &dyn Store, id: &str) {
    store.commit(recorded(task(id, "one", TaskPhase::Working, 0))).await.unwrap();
}

/// The numbers of the events found; each event must be the one of its number.
async fn numbers(store: &dyn Store, task: &str, after: u64, limit: usize) -> Vec<u64> {
    let found = store.events(task, after, limit).await.unwrap();
    for logged in &found {
        assert_eq!(logged.event, event(&logged.seq.to_string()), "event {}", logged.seq);
    }
    found.into_iter().map(|logged| logged.seq).collect()
}

/// Pages of every size, from every place, cut through commits or not.
pub(crate) async fn events_are_paged_exactly(store: &dyn Store) {
    begin(store, "t").await;
    let mut next = 1;
    for count in [1, 7, 2, 1, 40] {
        store.commit(logged("t", next, count)).await.unwrap();
        next += count;
    }
    let last = next - 1;
    for limit in [1, 2, 3, 10, 51, 1000] {
        for after in 0..=last {
            let wanted: Vec<_> = (after + 1..=last).take(limit).collect();
            assert_eq!(numbers(store, "t", after, limit).await, wanted, "after {after}, limit {limit}");
        }
    }
}

/// Each event has the time of its commit, to the microsecond, however the log is cut when it is read.
pub(crate) async fn events_keep_their_times(store: &dyn Store) {
    begin(store, "t").await;
    let finer = jiff::SignedDuration::from_nanos(999);
    for first in [1, 4, 7] {
        let commit = logged("t", first, 3);
        store.commit(Commit { at: commit.at + finer, ..commit }).await.unwrap();
    }
    for limit in [1, 2, 100] {
        for after in 0..9 {
            for logged in store.events("t", after, limit).await.unwrap() {
                assert_eq!(logged.at, time_of((logged.seq - 1) / 3 * 3 + 1), "event {}", logged.seq);
            }
        }
    }
}

/// A cursor is a number that a client names: it may be past the end, as far as numbers go.
pub(crate) async fn the_cursor_may_be_anywhere(store: &dyn Store) {
    begin(store, "t").await;
    store.commit(logged("t", 1, 3)).await.unwrap();
    for after in [3, 4, i64::MAX.unsigned_abs(), u64::MAX] {
        assert_eq!(numbers(store, "t", after, 10).await, Vec::<u64>::new(), "after {after}");
    }
    assert_eq!(numbers(store, "t", 0, 0).await, Vec::<u64>::new());
    assert_eq!(numbers(store, "t", 0, usize::MAX).await, [1, 2, 3]);
    assert_eq!(numbers(store, "none", 0, 10).await, Vec::<u64>::new());
}

/// Numbers follow one another, from 1; whatever else comes is a second writer's.
pub(crate) async fn a_gap_or_a_repeat_is_refused(store: &dyn Store) {
    begin(store, "t").await;
    for (first, expected) in [(0, ""), (2, "expects event 1"), (u64::MAX, "")] {
        let refused = store.commit(Commit { first_seq: first, ..logged("t", 1, 1) }).await.unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
    store.commit(logged("t", 1, 3)).await.unwrap();
    for first in [1, 3, 5, 100] {
        let refused = store.commit(logged("t", first, 2)).await.unwrap_err();
        assert!(matches!(&refused, StoreError::Failed { action: "commit", .. }), "{refused}");
        assert!(refused.to_string().contains("expects event 4"), "{refused}");
    }
    store.commit(logged("t", 4, 1)).await.unwrap();
    assert_eq!(numbers(store, "t", 0, 100).await, [1, 2, 3, 4]);
}

/// A log without a task would never be found, nor removed.
pub(crate) async fn events_need_a_task(store: &dyn Store) {
    let refused = store.commit(logged("t", 1, 1)).await.unwrap_err();
    assert!(refused.to_string().contains("\"t\""), "{refused}");
    let together = Commit { task: Some(task("t", "one", TaskPhase::Working, 0)), ..logged("t", 1, 2) };
    store.commit(together).await.unwrap();
    assert_eq!(numbers(store, "t", 0, 10).await, [1, 2]);
}

/// All of a commit or nothing of it.
pub(crate) async fn a_refused_commit_leaves_nothing(store: &dyn Store) {
    begin(store, "t").await;
    let bad = Commit { task: Some(task("t", "one", TaskPhase::Completed, 9)), ..logged("t", 5, 1) };
    let bad = Commit { snapshot: saved("one", "new").snapshot, context: "one".into(), ..bad };
    store.commit(bad).await.unwrap_err();
    assert_eq!(store.conversation("one").await.unwrap(), None);
    assert_eq!(store.task("t").await.unwrap().expect("the task").phase, TaskPhase::Working);
    assert_eq!(numbers(store, "t", 0, 10).await, Vec::<u64>::new());
}

/// Two that write the same log at once: each number goes to one of them.
pub(crate) async fn of_two_writers_one_is_refused(store: &dyn Store) {
    begin(store, "t").await;
    for first in 1..=50 {
        let both = join_all((0..2).map(|_| store.commit(logged("t", first, 1)))).await;
        assert_eq!(both.iter().filter(|outcome| outcome.is_ok()).count(), 1, "event {first}: {both:?}");
    }
    assert_eq!(numbers(store, "t", 0, 100).await, (1..=50).collect::<Vec<_>>());
}

/// Many runs at once, some of which misbehave: each log is whole and in order, and no failure is shared.
pub(crate) async fn concurrent_tasks_do_not_mix(store: &dyn Store) {
    const TASKS: u64 = 64;
    const COMMITS: u64 = 20;
    let refusals = join_all((0..TASKS).map(async |number| {
        let id = format!("task-{number}");
        begin(store, &id).await;
        let mut refused = 0;
        for step in 0..COMMITS {
            store.commit(logged(&id, step * 3 + 1, 3)).await.unwrap();
            if number % 4 == 0 {
                refused += u64::from(store.commit(logged(&id, step * 3 + 1, 3)).await.is_err());
            }
        }
        (number, refused)
    }))
    .await;
    let expected = (0..TASKS).map(|number| (number, if number % 4 == 0 { COMMITS } else { 0 }));
    assert_eq!(refusals.into_iter().collect::<BTreeMap<_, _>>(), expected.collect());
    for number in 0..TASKS {
        let found = numbers(store, &format!("task-{number}"), 0, 1000).await;
        assert_eq!(found, (1..=COMMITS * 3).collect::<Vec<_>>(), "task {number}");
    }
}
