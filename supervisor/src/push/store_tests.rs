use caipe_a2a::model::AuthenticationInfo;
use caipe_store::{Commit, MemoryStore, TaskPhase, TaskRecord};
use jiff::Timestamp;
use serde_json::json;

use super::*;

fn sample(version: ProtocolVersion) -> Registration {
    let config = TaskPushNotificationConfig {
        id: Some("c".to_owned()),
        task_id: Some("t".to_owned()),
        token: Some("t0k\"en".to_owned()),
        authentication: Some(AuthenticationInfo {
            scheme: "Bearer".to_owned(),
            credentials: Some("s3cret".to_owned()),
        }),
        ..TaskPushNotificationConfig::new("https://hooks.example.com/?a=ü")
    };
    Registration { task: "t".to_owned(), id: "c".to_owned(), version, config, delivered: 7 }
}

fn term(owner: &str) -> LeaseTerm {
    LeaseTerm { owner: owner.to_owned(), ttl: std::time::Duration::from_secs(6) }
}

async fn store_with_task() -> Arc<MemoryStore> {
    let (store, now) = (Arc::new(MemoryStore::new()), Timestamp::now());
    let task = TaskRecord {
        id: "t".to_owned(),
        context: "c".to_owned(),
        phase: TaskPhase::Working,
        created: now,
        updated: now,
        owner: None,
        trace_id: String::new(),
        request: json!({}),
        replies: Vec::new(),
        is_repeatable: false,
        recoveries: 0,
        status_message: None,
    };
    let commit = Commit { context: "c".to_owned(), task: Some(task), ..Commit::default() };
    store.commit(commit).await.unwrap();
    store
}

#[test]
fn both_count_what_is_done_alike() {
    assert_eq!(PushRecord::DONE, Registration::DONE);
}

#[tokio::test]
async fn stored_configurations_are_returned_unchanged() {
    let pushes = StoredPushes::new(store_with_task().await, term("one"));
    for version in [ProtocolVersion::V0_3, ProtocolVersion::V1_0] {
        pushes.put(sample(version)).await.unwrap();
        assert_eq!(pushes.of_task("t").await.unwrap(), [sample(version)]);
        assert_eq!(pushes.pending().await.unwrap(), [sample(version)]);
    }
    pushes.delivered("t", "c", Registration::DONE).await.unwrap();
    assert!(pushes.pending().await.unwrap().is_empty());
    pushes.delete("t", "c").await.unwrap();
    assert!(pushes.of_task("t").await.unwrap().is_empty());
}

#[tokio::test]
async fn what_cannot_be_read_holds_back_no_other() {
    let store = store_with_task().await;
    let odd = |id: &str, body: &str| PushRecord {
        task: "t".to_owned(),
        id: id.to_owned(),
        body: body.to_owned(),
        delivered: 0,
    };
    store.put_push(odd("a", "{}")).await.unwrap();
    store.put_push(odd("b", r#"{"version": "9.9", "config": {"url": "https://h/"}}"#)).await.unwrap();
    let pushes = StoredPushes::new(store, term("one"));
    pushes.put(sample(ProtocolVersion::V1_0)).await.unwrap();
    assert_eq!(pushes.pending().await.unwrap(), [sample(ProtocolVersion::V1_0)]);
}

#[tokio::test]
async fn one_process_delivers_what_is_stored() {
    let store = store_with_task().await;
    let (one, other) =
        (StoredPushes::new(store.clone(), term("one")), StoredPushes::new(store, term("other")));
    let (old, new) = (sample(ProtocolVersion::V0_3), sample(ProtocolVersion::V1_0));
    one.put(old.clone()).await.unwrap();
    assert_eq!(one.admit(&old).await.unwrap(), Some(7));
    assert_eq!(other.admit(&old).await.unwrap(), None, "the first one delivers");
    other.put(new.clone()).await.unwrap();
    assert_eq!(one.admit(&old).await.unwrap(), None, "it was replaced");
    assert_eq!(other.admit(&new).await.unwrap(), Some(7), "the first one has left it");
    other.delivered("t", "c", 9).await.unwrap();
    other.release("t", "c").await.unwrap();
    assert_eq!(one.admit(&new).await.unwrap(), Some(9), "from where the other one stopped");
    other.delete("t", "c").await.unwrap();
    assert_eq!(one.admit(&new).await.unwrap(), None, "it was deleted");
}
