use std::time::Duration;

use caipe_store::{
    Commit, ControlMessage, Fence, MAX_CONTROL_BYTES, MAX_CONTROLS, MAX_OUTBOX_BYTES, OutboxEntry, Retention,
    Store, StoreError, TaskPhase, Topic,
};

use crate::samples::{recorded, task, term};

fn control(id: &str, body: &str) -> ControlMessage {
    ControlMessage { id: id.into(), body: body.into() }
}

async fn begin(store: &dyn Store, id: &str) {
    store.commit(recorded(task(id, "one", TaskPhase::Working, 0))).await.unwrap();
}

async fn waiting(store: &dyn Store, after: u64) -> Vec<(u64, String)> {
    let controls = store.controls("t", after).await.unwrap();
    controls.into_iter().map(|control| (control.number, control.message.id)).collect()
}

/// The owner acts on the messages up to this number in a commit of its own.
async fn handle(store: &dyn Store, place: u64, handled: u64) {
    let fence = Fence { task: "t".into(), number: place, handled, ..Fence::default() };
    store.commit(Commit { fence: Some(fence), ..Commit::default() }).await.unwrap();
}

pub(crate) async fn control_messages_act_once_and_in_order(store: &dyn Store) {
    begin(store, "t").await;
    begin(store, "u").await;
    for id in ["b", "a", "b", "ü"] {
        store.send_control("t", control(id, "{}")).await.unwrap();
    }
    store.send_control("u", control("b", "{}")).await.unwrap();
    let named = |number: u64, id: &str| (number, id.to_owned());
    assert_eq!(waiting(store, 0).await, [named(1, "b"), named(2, "a"), named(3, "ü")]);
    assert_eq!(waiting(store, 2).await, [named(3, "ü")]);
    handle(store, 1, 2).await;
    assert_eq!(waiting(store, 0).await, [named(3, "ü")]);
    // The same message again, after it was handled; and a late commit that repeats an earlier number.
    store.send_control("t", control("a", "{}")).await.unwrap();
    handle(store, 2, 1).await;
    assert_eq!(waiting(store, 0).await, [named(3, "ü")]);
    assert!(store.acquire("t", &term("a")).await.unwrap().has_controls);
    handle_under(store, 1, 3).await;
    assert_eq!(waiting(store, 0).await, []);
    assert!(!store.acquire("t", &term("a")).await.unwrap().has_controls);
    store.send_control("t", control("c", "{}")).await.unwrap();
    assert_eq!(waiting(store, 0).await, [named(4, "c")]);
    assert_eq!(store.controls("u", 0).await.unwrap().len(), 1);
    assert_eq!(store.controls("none", 0).await.unwrap(), []);
}

async fn handle_under(store: &dyn Store, token: u64, handled: u64) {
    let fence = Fence { task: "t".into(), token, number: 1, handled, ..Fence::default() };
    store.commit(Commit { fence: Some(fence), ..Commit::default() }).await.unwrap();
}

pub(crate) async fn a_mailbox_is_bounded(store: &dyn Store) {
    assert!(store.send_control("t", control("a", "{}")).await.unwrap_err().to_string().contains("\"t\""));
    begin(store, "t").await;
    let large = store.send_control("t", control("a", &"x".repeat(MAX_CONTROL_BYTES + 1))).await.unwrap_err();
    assert!(matches!(large, StoreError::TooLarge { .. }), "{large}");
    let largest = "x".repeat(MAX_CONTROL_BYTES);
    for number in 0..MAX_CONTROLS {
        store.send_control("t", control(&number.to_string(), &largest)).await.unwrap();
    }
    let full = store.send_control("t", control("one more", "{}")).await.unwrap_err();
    assert!(matches!(full, StoreError::MailboxFull { .. }), "{full}");
    store.send_control("t", control("0", "{}")).await.expect("it has this one");
    handle(store, 1, 1).await;
    store.send_control("t", control("one more", "{}")).await.unwrap();
    // However many are handled, no number is used again.
    for round in 0..3 * MAX_CONTROLS as u64 {
        handle(store, 2 + round, MAX_CONTROLS as u64 + 1 + round).await;
        store.send_control("t", control(&format!("round {round}"), "{}")).await.unwrap();
        assert_eq!(waiting(store, 0).await, [(MAX_CONTROLS as u64 + 2 + round, format!("round {round}"))]);
    }
}

pub(crate) async fn the_owner_is_woken(store: &dyn Store) {
    begin(store, "t").await;
    let mut changes = store.watch("t", Topic::Controls).await.unwrap();
    store.send_control("t", control("a", "{}")).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.expect("it is woken");
    assert_eq!(waiting(store, 0).await.len(), 1);
}

pub(crate) async fn control_messages_go_with_their_task(store: &dyn Store) {
    store.commit(recorded(task("t", "one", TaskPhase::Completed, 0))).await.unwrap();
    store.send_control("t", control("a", "{}")).await.unwrap();
    let all = Retention { tasks_before: Some(jiff::Timestamp::MAX), ..Retention::default() };
    assert_eq!(store.prune(all).await.unwrap().tasks, 1);
    begin(store, "t").await;
    assert_eq!(waiting(store, 0).await, []);
    store.send_control("t", control("a", "{}")).await.unwrap();
    assert_eq!(waiting(store, 0).await, [(1, "a".to_owned())]);
}

/// What must follow a commit is stored with the commit or not at all.
pub(crate) async fn the_outbox_keeps_an_entry_until_it_is_done(store: &dyn Store) {
    let deadline = jiff::Timestamp::from_microsecond(1_800_000_000_000_001).unwrap();
    let entry =
        |id: &str| OutboxEntry { task: "t".into(), id: id.into(), body: r#"{"ü":1}"#.into(), deadline };
    let commit = |number, outbox: &[OutboxEntry]| {
        let fence = Fence { task: "t".into(), number, ..Fence::default() };
        store.commit(Commit { fence: Some(fence), outbox: outbox.to_vec(), ..Commit::default() })
    };
    begin(store, "t").await;
    commit(1, &[entry("b"), entry("a")]).await.unwrap();
    commit(1, &[entry("never")]).await.expect("it was committed before");
    assert_eq!(store.outbox().await.unwrap(), [entry("a"), entry("b")]);
    for _ in 0..2 {
        store.settle("t", "a").await.unwrap();
    }
    store.settle("none", "b").await.unwrap();
    assert_eq!(store.outbox().await.unwrap(), [entry("b")]);
    let large = OutboxEntry { body: "x".repeat(MAX_OUTBOX_BYTES + 1), ..entry("c") };
    let foreign = OutboxEntry { task: "u".into(), ..entry("c") };
    for refused in [large, foreign, entry("")] {
        commit(2, &[refused]).await.unwrap_err();
    }
    let unfenced = Commit { outbox: vec![entry("c")], ..Commit::default() };
    store.commit(unfenced).await.unwrap_err();
    store.commit(recorded(task("t", "one", TaskPhase::Completed, 0))).await.unwrap();
    assert_eq!(store.outbox().await.unwrap(), [entry("b")]);
    let all = Retention { tasks_before: Some(jiff::Timestamp::MAX), ..Retention::default() };
    store.prune(all).await.unwrap();
    assert_eq!(store.outbox().await.unwrap(), []);
}
