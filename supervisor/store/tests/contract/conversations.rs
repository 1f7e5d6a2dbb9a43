use caipe_engine::{CallKind, CallStatus, PendingCall};
use caipe_store::{Commit, MAX_VALUE_BYTES, Saved, Snapshot, Store, StoreError};
use serde_json::{Value, json};

use crate::samples::{appended, input, saved, state};

async fn expect(store: &dyn Store, context: &str, text: &str, appends: &[&str]) {
    let found = store.conversation(context).await.unwrap().expect("the conversation");
    assert_eq!(found, Saved { state: state(text), appends: appends.iter().copied().map(input).collect() });
}

/// Nothing is found where nothing was written.
pub(crate) async fn an_unknown_conversation_is_none(store: &dyn Store) {
    assert_eq!(store.conversation("none").await.unwrap(), None);
    store.commit(saved("one", "hello")).await.unwrap();
    assert_eq!(store.conversation("none").await.unwrap(), None);
    assert_eq!(store.task("none").await.unwrap(), None);
}

/// Inputs come back in the order of their commits, and within each in its own order.
pub(crate) async fn appends_come_back_in_order(store: &dyn Store) {
    store.commit(saved("one", "hello")).await.unwrap();
    store.commit(appended("one", &["a", "b"])).await.unwrap();
    store.commit(appended("one", &["c"])).await.unwrap();
    expect(store, "one", "hello", &["a", "b", "c"]).await;
}

/// A snapshot replaces everything before it; the rest of the same commit comes after it.
pub(crate) async fn a_snapshot_replaces_the_appends_before_it(store: &dyn Store) {
    store.commit(saved("one", "first")).await.unwrap();
    store.commit(saved("other", "first")).await.unwrap();
    store.commit(appended("one", &["a"])).await.unwrap();
    store.commit(appended("other", &["b"])).await.unwrap();
    store.commit(saved("one", "second")).await.unwrap();
    expect(store, "one", "second", &[]).await;
    let both = Commit { appends: vec![input("c")], ..saved("one", "third") };
    store.commit(both).await.unwrap();
    expect(store, "one", "third", &["c"]).await;
    expect(store, "other", "first", &["b"]).await;
}

/// An input alone could never be applied.
pub(crate) async fn an_append_needs_a_snapshot(store: &dyn Store) {
    let refused = store.commit(appended("one", &["a"])).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Failed { action: "commit", .. }), "{refused}");
    assert!(refused.to_string().contains("\"one\""), "{refused}");
    assert_eq!(store.conversation("one").await.unwrap(), None);
}

/// Any text, in values and in ids: other scripts, signs of several code points, NUL, quotes.
pub(crate) async fn unicode_comes_back(store: &dyn Store) {
    let text = "ä 🔧 👩‍👩‍👧 \u{0} \u{202e} \"'; DROP TABLE conversations; -- \r\n 会話";
    store.commit(saved(text, text)).await.unwrap();
    store.commit(appended(text, &[text])).await.unwrap();
    expect(store, text, text, &[text]).await;
    // Ids are compared as they are, with neither case nor form folded.
    store.commit(saved("É", "composed")).await.unwrap();
    assert_eq!(store.conversation("é").await.unwrap(), None);
    assert_eq!(store.conversation("E\u{301}").await.unwrap(), None);
}

/// A state of five megabytes.
pub(crate) async fn large_states_come_back(store: &dyn Store) {
    let large = "0123456789".repeat(500_000);
    store.commit(saved("one", &large)).await.unwrap();
    expect(store, "one", &large, &[]).await;
    store.commit(saved("one", "small")).await.unwrap();
    expect(store, "one", "small", &[]).await;
}

/// One value above the limit is refused, by name; nothing is written.
pub(crate) async fn huge_values_are_refused(store: &dyn Store) {
    let refused = store.commit(saved("one", &"x".repeat(MAX_VALUE_BYTES))).await.unwrap_err();
    assert!(matches!(&refused, StoreError::TooLarge { limit: MAX_VALUE_BYTES, .. }), "{refused}");
    assert!(refused.to_string().contains("the state of \"one\""), "{refused}");
    assert_eq!(store.conversation("one").await.unwrap(), None);
}

/// What was as deep as a JSON parser allows when it came in lies deeper in the state, and is read all the same.
pub(crate) async fn deep_values_come_back(store: &dyn Store) {
    let deep = (0..125).fold(json!("deep"), |inner, _| Value::Array(vec![inner]));
    let call = |arguments: Value, status| PendingCall {
        id: "call-1".into(),
        name: "search".into(),
        arguments,
        kind: CallKind::Tool,
        status,
    };
    let mut inner = state("inner");
    inner.calls.push(call(deep, CallStatus::Running));
    let mut outer = state("outer");
    outer.calls.push(call(json!({}), CallStatus::Nested { frame: Box::new(inner) }));
    let snapshot = Some(Snapshot::of(&outer).unwrap());
    store.commit(Commit { context: "one".into(), snapshot, ..Commit::default() }).await.unwrap();
    let found = store.conversation("one").await.unwrap().expect("the conversation");
    assert_eq!(found.state, outer);
}
