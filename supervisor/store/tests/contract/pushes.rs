use caipe_store::{MAX_ID_BYTES, MAX_PUSH_BYTES, PushRecord, Retention, Store, StoreError, TaskPhase};

use crate::samples::{recorded, saved, task};

fn push(task: &str, id: &str, body: &str, delivered: u64) -> PushRecord {
    PushRecord { task: task.into(), id: id.into(), body: body.into(), delivered }
}

async fn begin(store: &dyn Store, id: &str, phase: TaskPhase) {
    store.commit(recorded(task(id, "one", phase, 0))).await.unwrap();
}

/// One of each id, the last that was put; the number of what was delivered only rises.
pub(crate) async fn pushes_are_replaced_and_deleted(store: &dyn Store) {
    begin(store, "t", TaskPhase::Working).await;
    begin(store, "u", TaskPhase::Working).await;
    for (task, id, body) in [("t", "b", "{}"), ("t", "a", r#"{"url":"ü"}"#), ("u", "a", "1"), ("t", "b", "2")]
    {
        store.put_push(push(task, id, body, 0)).await.unwrap();
    }
    let (a, b) = (push("t", "a", r#"{"url":"ü"}"#, 0), push("t", "b", "2", 0));
    assert_eq!(store.pushes_of("t").await.unwrap(), [a.clone(), b.clone()]);
    store.push_delivered("t", "b", 7).await.unwrap();
    store.push_delivered("t", "b", 5).await.unwrap();
    store.push_delivered("t", "none", 5).await.unwrap();
    store.push_delivered("none", "b", 5).await.unwrap();
    assert_eq!(store.pushes_of("t").await.unwrap(), [a, PushRecord { delivered: 7, ..b }]);
    for _ in 0..2 {
        store.delete_push("t", "a").await.unwrap();
    }
    store.delete_push("none", "a").await.unwrap();
    assert_eq!(store.pushes_of("t").await.unwrap(), [push("t", "b", "2", 7)]);
    assert_eq!(store.pushes_of("u").await.unwrap(), [push("u", "a", "1", 0)]);
    assert_eq!(store.pushes_of("none").await.unwrap(), []);
}

/// After a restart the store lists the configurations whose task may still have events to deliver.
pub(crate) async fn pending_pushes_are_those_not_done(store: &dyn Store) {
    begin(store, "t", TaskPhase::Working).await;
    begin(store, "done", TaskPhase::Completed).await;
    for (task, id) in [("t", "b"), ("done", "x"), ("t", "a"), ("done", "y")] {
        store.put_push(push(task, id, "{}", 0)).await.unwrap();
    }
    store.push_delivered("t", "a", 9).await.unwrap();
    store.push_delivered("done", "x", u64::MAX).await.unwrap();
    let pending = store.pushes_pending().await.unwrap();
    let names: Vec<_> = pending.iter().map(|push| (&*push.task, &*push.id, push.delivered)).collect();
    assert_eq!(names, [("done", "y", 0), ("t", "a", 9), ("t", "b", 0)]);
    assert_eq!(store.pushes_of("done").await.unwrap()[0].delivered, PushRecord::DONE);
}

/// Clients choose ids and bodies.
pub(crate) async fn a_push_needs_a_task_and_a_small_body(store: &dyn Store) {
    let refused = store.put_push(push("none", "a", "{}", 0)).await.unwrap_err();
    assert!(refused.to_string().contains("\"none\""), "{refused}");
    begin(store, "t", TaskPhase::Working).await;
    store.put_push(push("t", "a", &"x".repeat(MAX_PUSH_BYTES), 0)).await.unwrap();
    for (id, body) in
        [("b", "x".repeat(MAX_PUSH_BYTES + 1)), (&*"x".repeat(MAX_ID_BYTES + 1), "{}".to_owned())]
    {
        let refused = store.put_push(push("t", id, &body, 0)).await.unwrap_err();
        assert!(matches!(refused, StoreError::TooLarge { .. }), "{refused}");
    }
    let refused = store.put_push(push("t", "", "{}", 0)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Encode(_)), "{refused}");
    assert_eq!(store.pushes_of("t").await.unwrap().len(), 1);
}

/// Removing a task removes its push configurations.
pub(crate) async fn pushes_go_with_their_task(store: &dyn Store) {
    store.commit(saved("one", "hello")).await.unwrap();
    begin(store, "old", TaskPhase::Completed).await;
    begin(store, "waiting", TaskPhase::InputRequired).await;
    for task in ["old", "waiting"] {
        store.put_push(push(task, "a", "{}", 0)).await.unwrap();
    }
    let soon = Some(jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1));
    store.prune(Retention { tasks_before: soon, ..Retention::default() }).await.unwrap();
    assert_eq!(store.pushes_pending().await.unwrap(), [push("waiting", "a", "{}", 0)]);
    store.prune(Retention { conversations_before: soon, ..Retention::default() }).await.unwrap();
    assert_eq!(store.pushes_pending().await.unwrap(), []);
    begin(store, "old", TaskPhase::Working).await;
    assert_eq!(store.pushes_of("old").await.unwrap(), [], "a new task of that name does not inherit it");
}
