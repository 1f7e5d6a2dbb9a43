use caipe_store::{
    FactChange, FactRecord, MAX_FACT_BYTES, MAX_ID_BYTES, Retention, Store, StoreError, TaskPhase,
};
use jiff::{SignedDuration, Timestamp};

use crate::samples::{recorded, saved, task};

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

pub(crate) fn fact(owner: &str, id: &str, json: &str) -> FactRecord {
    let (owner, id, json) = (owner.into(), id.into(), json.into());
    FactRecord { owner, id, agent: "jira".into(), saved: at(0), expires: None, json }
}

pub(crate) async fn save(store: &dyn Store, fact: &FactRecord) {
    assert_eq!(store.change_facts(FactChange::Save(fact.clone())).await.unwrap(), 0);
}

async fn ids(store: &dyn Store, owner: &str, now: Timestamp) -> Vec<String> {
    store.facts(owner, now).await.unwrap().into_iter().map(|fact| fact.id).collect()
}

/// The same id, and owners of which one begins as another, do not mix.
pub(crate) async fn facts_are_those_of_one_owner(store: &dyn Store) {
    let owners = ["ann", "an", "ann\n1:x", "1:ann", "Ann", "ä"];
    for owner in owners {
        save(store, &fact(owner, "a", owner)).await;
    }
    for owner in owners {
        assert_eq!(store.facts(owner, at(1)).await.unwrap(), [fact(owner, "a", owner)]);
    }
    assert_eq!(store.facts("bob", at(1)).await.unwrap(), []);
    let removed = store.change_facts(FactChange::RemoveAll { owner: "ann".into() }).await.unwrap();
    assert_eq!((removed, ids(store, "ann", at(1)).await.len()), (1, 0));
    for owner in &owners[1..] {
        assert_eq!(ids(store, owner, at(1)).await, ["a"], "{owner:?}");
    }
}

/// One of each id, the newest first.
pub(crate) async fn facts_are_replaced_and_removed(store: &dyn Store) {
    let newest = FactRecord { saved: at(5), agent: "github".into(), ..fact("ann", "c", r#"{"fact":"ü"}"#) };
    for fact in [&fact("ann", "b", "1"), &fact("ann", "a", "2"), &newest, &fact("ann", "b", "3")] {
        save(store, fact).await;
    }
    let expected = [newest, fact("ann", "a", "2"), fact("ann", "b", "3")];
    assert_eq!(store.facts("ann", at(9)).await.unwrap(), expected);
    let remove = |owner: &str, id: &str| FactChange::Remove { owner: owner.into(), id: id.into() };
    for (owner, id, removed) in [("bob", "a", 0), ("ann", "none", 0), ("ann", "a", 1), ("ann", "a", 0)] {
        assert_eq!(store.change_facts(remove(owner, id)).await.unwrap(), removed, "{owner} {id}");
    }
    assert_eq!(ids(store, "ann", at(9)).await, ["c", "b"]);
    for removed in [2, 0] {
        let all = FactChange::RemoveAll { owner: "ann".into() };
        assert_eq!(store.change_facts(all).await.unwrap(), removed);
    }
    assert_eq!(store.facts("ann", at(9)).await.unwrap(), []);
}

/// An expired fact is not read, also before it is removed.
pub(crate) async fn facts_expire(store: &dyn Store) {
    let expiring = |id: &str, seconds| FactRecord { expires: Some(at(seconds)), ..fact("ann", id, "{}") };
    for fact in
        [&expiring("short", 10), &expiring("long", 20), &expiring("renewed", 10), &fact("ann", "ever", "{}")]
    {
        save(store, fact).await;
    }
    save(store, &expiring("renewed", 30)).await;
    save(store, &FactRecord { owner: "bob".into(), ..expiring("short", 10) }).await;
    assert_eq!(ids(store, "ann", at(9)).await, ["ever", "long", "renewed", "short"]);
    assert_eq!(ids(store, "ann", at(10)).await, ["ever", "long", "renewed"]);
    let expired = |seconds| FactChange::RemoveExpired(at(seconds) + SignedDuration::from_millis(2));
    assert_eq!(store.change_facts(expired(10)).await.unwrap(), 2, "of both owners");
    assert_eq!(store.change_facts(expired(10)).await.unwrap(), 0);
    assert_eq!(ids(store, "ann", at(0)).await, ["ever", "long", "renewed"]);
    save(store, &fact("ann", "long", "{}")).await;
    assert_eq!(store.change_facts(expired(40)).await.unwrap(), 1, "one does not expire any more");
    assert_eq!(ids(store, "ann", at(99)).await, ["ever", "long"]);
    // More than one step of a backend.
    for number in 0..300 {
        save(store, &expiring(&format!("many-{number}"), 50)).await;
    }
    assert_eq!(store.change_facts(expired(50)).await.unwrap(), 300);
}

/// Models choose the text.
pub(crate) async fn facts_are_bounded(store: &dyn Store) {
    save(store, &fact("ann", "a", &"x".repeat(MAX_FACT_BYTES))).await;
    let long = "x".repeat(MAX_ID_BYTES + 1);
    for fact in [
        fact("ann", "b", &"x".repeat(MAX_FACT_BYTES + 1)),
        fact(&long, "b", "{}"),
        fact("ann", &long, "{}"),
        FactRecord { agent: long.clone(), ..fact("ann", "b", "{}") },
    ] {
        let refused = store.change_facts(FactChange::Save(fact)).await.unwrap_err();
        assert!(matches!(refused, StoreError::TooLarge { .. }), "{refused}");
    }
    for fact in [fact("", "b", "{}"), fact("ann", "", "{}")] {
        let refused = store.change_facts(FactChange::Save(fact)).await.unwrap_err();
        assert!(matches!(refused, StoreError::Encode(_)), "{refused}");
    }
    assert_eq!(ids(store, "ann", at(1)).await, ["a"]);
}

/// Facts have a term of their own.
pub(crate) async fn facts_stay_when_conversations_go(store: &dyn Store) {
    store.commit(saved("one", "hello")).await.unwrap();
    store.commit(recorded(task("t", "one", TaskPhase::Completed, 0))).await.unwrap();
    save(store, &fact("ann", "a", "{}")).await;
    let soon = Some(Timestamp::now() + SignedDuration::from_hours(1));
    let pruned = store.prune(Retention { tasks_before: soon, conversations_before: soon }).await.unwrap();
    assert_eq!((pruned.tasks, pruned.conversations), (1, 1));
    assert_eq!(ids(store, "ann", at(1)).await, ["a"]);
}
