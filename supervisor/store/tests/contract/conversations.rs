use std::sync::Arc;

use caipe_engine::{CallKind, CallStatus, PendingCall, RunState};
use caipe_model::{Message, Role};
use caipe_store::{MAX_VALUE_BYTES, SavedConversation, Store, StoreError};
use serde_json::{Value, json};

use crate::samples::{changed, saved, state};

async fn load(store: &dyn Store, context: &str) -> RunState {
    let stored = store.conversation(context).await.unwrap().expect("the conversation");
    stored.decode(context).unwrap().0
}

fn text(text: &str) -> Arc<Message> {
    Arc::new(Message::text(Role::Assistant, text))
}

/// Nothing is found where nothing was written.
pub(crate) async fn an_unknown_conversation_is_none(store: &dyn Store) {
    assert_eq!(store.conversation("none").await.unwrap(), None);
    store.commit(saved("one", "hello")).await.unwrap();
    assert_eq!(store.conversation("none").await.unwrap(), None);
    assert_eq!(store.task("none").await.unwrap(), None);
}

/// Messages and files that are new are appended, those that went are removed, and one that changed is replaced.
pub(crate) async fn a_list_is_cut_and_extended(store: &dyn Store) {
    type Step = Box<dyn Fn(&mut RunState)>;
    let steps: Vec<Step> = vec![
        Box::new(|state| state.messages.extend(["a", "b", "c"].map(text))),
        Box::new(|state| drop(Arc::make_mut(&mut state.files).insert("/notes".into(), "one".into()))),
        Box::new(|state| state.messages[1] = text("another")),
        Box::new(|state| drop(Arc::make_mut(&mut state.files).insert("/notes".into(), "two".into()))),
        Box::new(|state| drop(state.messages.remove(0))),
        Box::new(|state| drop(Arc::make_mut(&mut state.files).insert("/more".into(), "three".into()))),
        Box::new(|state| drop(Arc::make_mut(&mut state.files).remove("/notes"))),
        Box::new(|state| state.messages.truncate(1)),
        Box::new(|state| state.messages.clear()),
        Box::new(|state| state.messages.push(text("again"))),
    ];
    store.commit(saved("other", "hello")).await.unwrap();
    let (mut saved, mut state) = (SavedConversation::default(), state("hello"));
    for step in &steps {
        step(&mut state);
        store.commit(changed("one", &saved, &state)).await.unwrap();
        saved.set(&state);
        assert_eq!(load(store, "one").await, state);
    }
    let (loaded, saved) = store.conversation("one").await.unwrap().unwrap().decode("one").unwrap();
    assert_eq!(saved.change(&loaded).unwrap().lists, [], "nothing is written again after a restart");
    assert_eq!(load(store, "other").await, crate::samples::state("hello"));
}

/// The messages of a nested run are its own, and go with it.
pub(crate) async fn nested_runs_come_back_and_go(store: &dyn Store) {
    let call = |id: &str, frame| PendingCall {
        id: id.into(),
        name: "task".into(),
        arguments: json!({}),
        kind: CallKind::Delegation { agent: "jira".to_owned().into() },
        status: CallStatus::Nested { frame: Box::new(frame) },
        answered: None,
        step_of: None,
        approved: Vec::new(),
    };
    let mut outer = state("outer");
    // Models choose the ids of calls.
    for id in ["a", "a/b", "~1", "\n"] {
        let mut inner = state(id);
        inner.calls.push(call("b", state(&format!("below {id}"))));
        outer.calls.push(call(id, inner));
    }
    let mut saved = SavedConversation::default();
    store.commit(changed("one", &saved, &outer)).await.unwrap();
    assert_eq!(load(store, "one").await, outer);
    saved.set(&outer);
    outer.calls.truncate(1);
    store.commit(changed("one", &saved, &outer)).await.unwrap();
    assert_eq!(load(store, "one").await, outer);
    assert_eq!(store.conversation("one").await.unwrap().unwrap().lists.len(), 3, "the others are gone");
}

/// Any text, in values and in ids: other scripts, signs of several code points, NUL, quotes.
pub(crate) async fn unicode_comes_back(store: &dyn Store) {
    let text = "ä 🔧 👩‍👩‍👧 \u{0} \u{202e} \"'; DROP TABLE conversations; -- \r\n 会話";
    store.commit(saved(text, text)).await.unwrap();
    assert_eq!(load(store, text).await, state(text));
    // Ids are compared as they are, with neither case nor form folded.
    store.commit(saved("É", "composed")).await.unwrap();
    assert_eq!(store.conversation("é").await.unwrap(), None);
    assert_eq!(store.conversation("E\u{301}").await.unwrap(), None);
}

/// A message of five megabytes.
pub(crate) async fn large_states_come_back(store: &dyn Store) {
    let large = "0123456789".repeat(500_000);
    store.commit(saved("one", &large)).await.unwrap();
    assert_eq!(load(store, "one").await, state(&large));
    store.commit(saved("one", "small")).await.unwrap();
    assert_eq!(load(store, "one").await, state("small"));
}

/// One value above the limit is refused, by name.
pub(crate) async fn huge_values_are_refused(store: &dyn Store) {
    let refused = SavedConversation::default().change(&state(&"x".repeat(MAX_VALUE_BYTES))).unwrap_err();
    assert!(matches!(&refused, StoreError::TooLarge { limit: MAX_VALUE_BYTES, .. }), "{refused}");
    assert!(refused.to_string().contains("a message of the conversation"), "{refused}");
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
        answered: None,
        step_of: None,
        approved: Vec::new(),
    };
    let mut inner = state("inner");
    inner.calls.push(call(deep, CallStatus::Running));
    let mut outer = state("outer");
    outer.calls.push(call(json!({}), CallStatus::Nested { frame: Box::new(inner) }));
    store.commit(changed("one", &SavedConversation::default(), &outer)).await.unwrap();
    assert_eq!(load(store, "one").await, outer);
}
