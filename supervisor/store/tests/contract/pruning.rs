use std::collections::BTreeMap;

use caipe_store::{Pruned, Retention, SavedConversation, Store, TaskFilter, TaskPhase};
use jiff::{SignedDuration, Timestamp};

use crate::samples::{changed, logged, recorded, saved, state, task};

fn soon() -> Timestamp {
    Timestamp::now() + SignedDuration::from_hours(1)
}

fn long_ago() -> Timestamp {
    "2020-01-02T00:00:00Z".parse().unwrap()
}

async fn run(store: &dyn Store, id: &str, context: &str, phase: TaskPhase, second: i64) {
    store.commit(recorded(task(id, context, phase, second))).await.unwrap();
    store.commit(logged(id, 1, 3)).await.unwrap();
}

/// Without a policy, or where all is young enough, everything stays.
pub(crate) async fn nothing_goes_without_a_policy(store: &dyn Store) {
    store.commit(saved("one", "hello")).await.unwrap();
    run(store, "t", "one", TaskPhase::Completed, 0).await;
    let young = Retention {
        tasks_before: Some("2019-01-01T00:00:00Z".parse().unwrap()),
        conversations_before: Some(long_ago()),
    };
    for retention in [Retention::default(), young] {
        assert_eq!(store.prune(retention).await.unwrap(), Pruned::default());
    }
    assert!(store.conversation("one").await.unwrap().is_some());
    assert_eq!(store.events("t", 0, 10).await.unwrap().len(), 3);
}

/// Tasks that ended long ago go with their logs, more of them than one step takes; the others stay.
pub(crate) async fn tasks_go_when_ended_and_old(store: &dyn Store) {
    const DAY: i64 = 24 * 3600;
    for number in 0..150 {
        run(store, &format!("old-{number}"), "one", TaskPhase::Completed, number).await;
    }
    run(store, "young", "one", TaskPhase::Completed, 2 * DAY).await;
    run(store, "busy", "one", TaskPhase::Working, 0).await;
    run(store, "waiting", "one", TaskPhase::InputRequired, 0).await;
    let retention = Retention { tasks_before: Some(long_ago()), ..Retention::default() };
    assert_eq!(store.prune(retention).await.unwrap(), Pruned { tasks: 150, conversations: 0 });
    let mut left: Vec<_> =
        (store.tasks(&TaskFilter::default()).await.unwrap().into_iter()).map(|task| task.id).collect();
    left.sort_unstable();
    assert_eq!(left, ["busy", "waiting", "young"]);
    assert_eq!(store.events("old-0", 0, 10).await.unwrap(), []);
    assert_eq!(store.events("young", 0, 10).await.unwrap().len(), 3);
    // The id is free again, from the first number on.
    run(store, "old-0", "one", TaskPhase::Working, 0).await;
}

/// A conversation goes with its tasks, even one that waits for a human, unless a run is under way in it.
pub(crate) async fn conversations_go_when_idle(store: &dyn Store) {
    for context in ["idle", "busy", "alone"] {
        store.commit(saved(context, "hello")).await.unwrap();
    }
    run(store, "done", "idle", TaskPhase::Completed, 0).await;
    run(store, "waiting", "idle", TaskPhase::InputRequired, 0).await;
    run(store, "working", "busy", TaskPhase::Working, 0).await;
    let retention = Retention { conversations_before: Some(soon()), ..Retention::default() };
    assert_eq!(store.prune(retention).await.unwrap(), Pruned { tasks: 2, conversations: 2 });
    for (context, stays) in [("idle", false), ("busy", true), ("alone", false)] {
        assert_eq!(store.conversation(context).await.unwrap().is_some(), stays, "{context}");
    }
    assert_eq!(store.events("done", 0, 10).await.unwrap(), []);
    assert_eq!(store.task("waiting").await.unwrap(), None);
    // The messages are gone too: a new conversation of that name does not inherit them.
    let again = state("again");
    store.commit(changed("idle", &SavedConversation::of(&again), &again)).await.unwrap();
    assert_eq!(store.conversation("idle").await.unwrap().expect("the conversation").lists, BTreeMap::new());
}
