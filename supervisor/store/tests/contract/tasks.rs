use caipe_store::{
    Commit, MAX_ID_BYTES, Retention, Store, StoreError, TaskFilter, TaskPhase, TaskPlace, TaskRecord,
    TaskReply,
};
use futures::future::join_all;
use serde_json::json;

use crate::samples::{logged, recorded, saved, task, term};

async fn ids(store: &dyn Store, filter: &TaskFilter) -> Vec<String> {
    store.tasks(filter).await.unwrap().into_iter().map(|record| record.id).collect()
}

/// The list from behind the last of these on.
async fn beyond(store: &dyn Store, before: &[&str]) -> TaskFilter {
    let Some(last) = before.last() else { return TaskFilter::default() };
    let record = store.task(last).await.unwrap().expect("the task");
    let place = TaskPlace { updated: record.updated, id: record.id };
    TaskFilter { beyond: Some(place), ..TaskFilter::default() }
}

/// A record is as it was last written, every member of it.
pub(crate) async fn tasks_are_replaced(store: &dyn Store) {
    let first = task("t", "one", TaskPhase::Submitted, 0);
    store.commit(recorded(first.clone())).await.unwrap();
    assert_eq!(store.task("t").await.unwrap(), Some(first.clone()));
    let updated = first.updated + jiff::SignedDuration::from_nanos(1_000_000_001);
    let (message, at) = (json!({"parts": [{"text": "this one"}]}), updated);
    let second = TaskRecord {
        phase: TaskPhase::Completed,
        updated,
        owner: Some("anna@example.com".into()),
        replies: vec![TaskReply { after: 7, at, message: message.clone() }],
        status_message: Some(message),
        ..first
    };
    store.commit(recorded(second.clone())).await.unwrap();
    assert_eq!(store.task("t").await.unwrap(), Some(second.clone()));
    assert_eq!(store.tasks(&TaskFilter::default()).await.unwrap(), [second]);
}

/// Newest change first, whatever the order of writing; pages neither overlap nor leave a gap.
pub(crate) async fn lists_are_ordered_and_paged(store: &dyn Store) {
    for (id, second) in [("b", 5), ("a", 5), ("d", 1), ("c", 9), ("e", 3)] {
        store.commit(recorded(task(id, "one", TaskPhase::Working, second))).await.unwrap();
    }
    let all = ["c", "b", "a", "e", "d"];
    assert_eq!(ids(store, &TaskFilter::default()).await, all);
    for size in 1..=6 {
        for skipped in 0..=5 {
            let page = TaskFilter { limit: size, ..beyond(store, &all[..skipped]).await };
            let wanted: Vec<_> = all.into_iter().skip(skipped).take(size).collect();
            assert_eq!(ids(store, &page).await, wanted, "{size} from {skipped}");
            assert_eq!(store.count_tasks(&page).await.unwrap(), 5);
        }
    }
    let third = beyond(store, &all[..3]).await;
    store.commit(recorded(task("d", "one", TaskPhase::Completed, 10))).await.unwrap();
    assert_eq!(ids(store, &TaskFilter::default()).await, ["d", "c", "b", "a", "e"]);
    assert_eq!(ids(store, &third).await, ["e"], "what comes to the front moves no other page");
    assert_eq!(ids(store, &beyond(store, &["d", "c"]).await).await, ["b", "a", "e"]);
}

/// Every part of a filter narrows.
pub(crate) async fn filters_combine(store: &dyn Store) {
    use TaskPhase::{Completed, Failed, Working};
    let owned = |id, context, phase, owner: Option<&str>| TaskRecord {
        owner: owner.map(Into::into),
        ..task(id, context, phase, 0)
    };
    for record in [
        owned("a", "one", Working, Some("anna")),
        owned("b", "one", Completed, Some("anna")),
        owned("c", "one", Completed, Some("bert")),
        owned("d", "two", Failed, Some("anna")),
        owned("e", "two", Working, None),
    ] {
        store.commit(recorded(record)).await.unwrap();
    }
    let filter = |context: &str, phases: &[TaskPhase], owner: &str| TaskFilter {
        context: Some(context.to_owned()).filter(|context| !context.is_empty()),
        phases: phases.to_vec(),
        owner: Some(owner.to_owned()).filter(|owner| !owner.is_empty()),
        ..TaskFilter::default()
    };
    for (filter, wanted) in [
        (filter("one", &[], ""), "cba"),
        (filter("", &[Working], ""), "ea"),
        (filter("", &[Completed, Failed], ""), "dcb"),
        (filter("", &[], "anna"), "dba"),
        (filter("one", &[Completed], "anna"), "b"),
        (filter("two", &[Completed], ""), ""),
        (filter("ONE", &[], ""), ""),
        (filter("", &[], "' OR 1=1 --"), ""),
    ] {
        assert_eq!(ids(store, &filter).await.concat(), wanted, "{filter:?}");
        assert_eq!(store.count_tasks(&filter).await.unwrap(), wanted.len() as u64, "{filter:?}");
    }
}

/// A time bounds the list from below; what changed in that very microsecond is in it.
pub(crate) async fn lists_may_begin_at_a_time(store: &dyn Store) {
    for (id, second) in [("a", 1), ("b", 2), ("c", 3)] {
        store.commit(recorded(task(id, "one", TaskPhase::Working, second))).await.unwrap();
    }
    let second = task("", "", TaskPhase::Working, 2).updated;
    let micro = jiff::SignedDuration::from_micros(1);
    for (since, wanted) in [(second - micro, "cb"), (second, "cb"), (second + micro, "c")] {
        let filter = TaskFilter { since: Some(since), ..TaskFilter::default() };
        assert_eq!(ids(store, &filter).await.concat(), wanted, "{since}");
        assert_eq!(store.count_tasks(&filter).await.unwrap(), wanted.len() as u64);
    }
}

/// Clients choose ids: an empty one or a huge one is refused, with a reason.
pub(crate) async fn ids_are_bounded(store: &dyn Store) {
    let longest = "x".repeat(MAX_ID_BYTES);
    let long = "x".repeat(MAX_ID_BYTES + 1);
    store.commit(saved(&longest, "hello")).await.unwrap();
    store.commit(recorded(task(&longest, &longest, TaskPhase::Working, 0))).await.unwrap();
    for commit in
        [saved(&long, "hello"), recorded(task(&long, "one", TaskPhase::Working, 0)), logged(&long, 1, 1)]
    {
        let refused = store.commit(commit).await.unwrap_err();
        assert!(matches!(refused, StoreError::TooLarge { bytes: 1025, limit: 1024, .. }), "{refused}");
    }
    for commit in [saved("", "hello"), recorded(task("", "one", TaskPhase::Working, 0)), logged("", 1, 1)] {
        let refused = store.commit(commit).await.unwrap_err();
        assert!(matches!(refused, StoreError::Encode(_)), "{refused}");
    }
}

/// A backend that works says so, as often as it is asked.
pub(crate) async fn the_backend_is_healthy(store: &dyn Store) {
    assert!(!store.backend().is_empty());
    store.healthy().await.unwrap();
    store.healthy().await.unwrap();
}

/// Of several principals that begin a conversation of one name at once, one gets it. It keeps it as long as there is anything
/// of it.
pub(crate) async fn a_conversation_belongs_to_the_principal_of_its_first_task(store: &dyn Store) {
    let create = |id: &str, owner: Option<&str>, phase| {
        let record = TaskRecord { owner: owner.map(Into::into), ..task(id, "one", phase, 0) };
        store.commit(Commit { create: Some(term("a")), ..recorded(record) })
    };
    let names: Vec<_> = (0..8).map(|number| number.to_string()).collect();
    let all = join_all(names.iter().map(|name| create(name, Some(name), TaskPhase::Completed))).await;
    let first: Vec<_> = names.iter().zip(&all).filter(|(_, outcome)| outcome.is_ok()).collect();
    let [(first, _)] = first.as_slice() else { panic!("{all:?}") };
    for refused in all.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert!(
            matches!(refused, StoreError::ForeignConversation { context } if context == "one"),
            "{refused}"
        );
    }
    // Without authentication, every conversation is accessible; that makes nobody its owner.
    create("open", None, TaskPhase::Completed).await.unwrap();
    create("again", Some(first), TaskPhase::Completed).await.unwrap();
    store.commit(saved("one", "hello")).await.unwrap();
    let prune = async |retention| store.prune(retention).await.unwrap();
    let soon = Some(jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1));
    prune(Retention { tasks_before: soon, ..Retention::default() }).await;
    assert_eq!(store.count_tasks(&TaskFilter::default()).await.unwrap(), 0);
    create("later", Some("other"), TaskPhase::Completed).await.unwrap_err();
    prune(Retention { conversations_before: soon, ..Retention::default() }).await;
    create("later", Some("other"), TaskPhase::Completed).await.expect("it is gone, and so is its owner");
    create("more", Some(first), TaskPhase::Completed).await.unwrap_err();
}
