use std::collections::BTreeMap;

use caipe_store::{Commit, EventChunk, Fence, Lease, Store, TaskPhase};
use futures::future::join_all;

use crate::samples::{event, logged, recorded, saved, task, term, time_of};

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
    for first in [1, 4, 7] {
        store.commit(logged("t", first, 3)).await.unwrap();
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

/// The commit as the next one of its owner.
fn at_place(number: u64, commit: Commit) -> Commit {
    let fence = commit.fence.map(|fence| Fence { number, ..fence });
    Commit { fence, ..commit }
}

/// Numbers rise; one that was left out never exists. A number that is there already is a second writer's.
pub(crate) async fn a_number_is_never_used_again(store: &dyn Store) {
    begin(store, "t").await;
    for first in [0, u64::MAX] {
        EventChunk::of(first, time_of(1), &[event("a"), event("b")]).unwrap_err();
    }
    store.commit(at_place(1, logged("t", 1, 3))).await.unwrap();
    for first in [1, 3] {
        let refused = store.commit(at_place(2, logged("t", first, 2))).await.unwrap_err();
        assert_eq!(refused.category(), "refused", "{refused}");
        assert!(refused.to_string().contains("an event above 3"), "{refused}");
    }
    store.commit(at_place(3, logged("t", 7, 2))).await.unwrap();
    assert_eq!(numbers(store, "t", 0, 100).await, [1, 2, 3, 7, 8]);
    assert_eq!(numbers(store, "t", 4, 1).await, [7]);
}

/// An owner repeats a commit whose outcome it does not know.
pub(crate) async fn a_commit_that_is_repeated_changes_nothing(store: &dyn Store) {
    begin(store, "t").await;
    let first = at_place(1, logged("t", 1, 2));
    for _ in 0..2 {
        store.commit(first.clone()).await.unwrap();
    }
    store.commit(at_place(2, logged("t", 3, 2))).await.unwrap();
    store.commit(Commit { task: Some(task("t", "one", TaskPhase::Failed, 9)), ..first }).await.unwrap();
    assert_eq!(numbers(store, "t", 0, 100).await, [1, 2, 3, 4]);
    assert_eq!(store.task("t").await.unwrap().expect("the task").phase, TaskPhase::Working);
}

/// A lease ends those before it, and its owner begins above all numbers that they may have shown.
pub(crate) async fn an_earlier_owner_is_refused(store: &dyn Store) {
    begin(store, "t").await;
    let mut first = logged("t", 1, 2);
    first.fence.as_mut().unwrap().reserved = 40;
    store.commit(first).await.unwrap();
    let lease = |token| Lease { token, reserved: 40, ..Lease::default() };
    assert_eq!(store.acquire("t", &term("one")).await.unwrap(), lease(1));
    let refused = store.commit(logged("t", 3, 1)).await.unwrap_err();
    assert_eq!(refused.category(), "lease_lost", "{refused}");
    let mut next = logged("t", 41, 1);
    next.fence = Some(Fence { task: "t".into(), token: 1, number: 1, ..Fence::default() });
    store.commit(next).await.unwrap();
    assert_eq!(numbers(store, "t", 0, 100).await, [1, 2, 41]);
    assert_eq!(store.acquire("t", &term("one")).await.unwrap(), lease(2));
    assert!(store.acquire("none", &term("one")).await.unwrap_err().to_string().contains("\"none\""));
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
    store.commit(logged("t", 1, 1)).await.unwrap();
    let bad = at_place(2, logged("t", 1, 1));
    let bad = Commit { task: Some(task("t", "one", TaskPhase::Completed, 9)), ..bad };
    let bad = Commit { conversation: saved("one", "new").conversation, context: "one".into(), ..bad };
    store.commit(bad).await.unwrap_err();
    assert_eq!(store.conversation("one").await.unwrap(), None);
    assert_eq!(store.task("t").await.unwrap().expect("the task").phase, TaskPhase::Working);
    assert_eq!(numbers(store, "t", 0, 10).await, [1]);
}

/// Two that write the same log at once: each number goes to one of them.
pub(crate) async fn of_two_writers_one_is_refused(store: &dyn Store) {
    begin(store, "t").await;
    for first in 1..=50 {
        let both =
            join_all((0..2).map(|writer| store.commit(at_place(2 * first + writer, logged("t", first, 1)))))
                .await;
        assert_eq!(both.iter().filter(|outcome| outcome.is_ok()).count(), 1, "event {first}: {both:?}");
    }
    assert_eq!(numbers(store, "t", 0, 100).await, (1..=50).collect::<Vec<_>>());
}

/// Many runs at once, some of which misbehave: each log is whole and in order, and no failure is shared.
pub(crate) async fn concurrent_tasks_do_not_mix(store: &dyn Store) {
    const TASKS: u64 = 24;
    const COMMITS: u64 = 20;
    let refusals = join_all((0..TASKS).map(async |number| {
        let id = format!("task-{number}");
        begin(store, &id).await;
        let mut refused = 0;
        for step in 0..COMMITS {
            store.commit(logged(&id, step * 3 + 1, 3)).await.unwrap();
            if number % 4 == 0 {
                let repeated = at_place(step * 3 + 4, logged(&id, step * 3 + 1, 3));
                refused += u64::from(store.commit(repeated).await.is_err());
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
