//! Encrypted values that were moved, values from before the keys, and copies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod samples;

use std::sync::Arc;

use caipe_store::{
    ControlMessage, EncryptedStore, ExportFile, FactChange, FactRecord, FactStore as _, ImportBatch, Keyring,
    MemoryStore, PushRecord, Record, RecordSource as _, Store, StoreReader, TaskPhase, Transfer, export,
    import, refuse_encrypted, rotate,
};
use samples::{logged, recorded, saved, task, time_of};

const KEYS: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

async fn encrypted(inner: &Arc<MemoryStore>) -> EncryptedStore {
    EncryptedStore::open(inner.clone(), Keyring::parse(KEYS).unwrap()).await.unwrap()
}

async fn fill(store: &dyn Store) {
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
    store.commit(logged("t", 1, 3)).await.unwrap();
    store.commit(saved("one", "hello")).await.unwrap();
    let body = r#"{"token":"s3cret"}"#.to_owned();
    store.put_push(PushRecord { task: "t".into(), id: "p".into(), body, delivered: 0 }).await.unwrap();
    store.change_facts(FactChange::Save(fact("f", r#"{"fact":"likes tea"}"#))).await.unwrap();
}

fn fact(id: &str, json: &str) -> FactRecord {
    let [owner, id, agent, json] = ["ann", id, "jira", json].map(str::to_owned);
    FactRecord { owner, id, agent, saved: time_of(1), expires: None, json }
}

async fn records(store: &Arc<MemoryStore>) -> Vec<Record> {
    let mut reader = StoreReader::new(store.clone());
    let mut records = Vec::new();
    while let Some(record) = reader.next().await.unwrap() {
        records.push(record);
    }
    records
}

async fn copy(records: Vec<Record>) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    store.begin_import("copy").await.unwrap();
    store.import(ImportBatch { export: "copy".into(), begin: 0, records }).await.unwrap();
    store.finish_import().await.unwrap();
    store
}

#[tokio::test]
async fn a_copy_stays_encrypted_and_is_read_with_the_same_keys() {
    let inner = Arc::new(MemoryStore::new());
    fill(&encrypted(&inner).await).await;
    let records = records(&inner).await;
    let text = serde_json::to_string(&records).unwrap();
    for secret in ["hello", "What changed", "s3cret", "tea"] {
        assert!(!text.contains(secret), "{secret} is readable: {text}");
    }
    let copied = encrypted(&copy(records).await).await;
    let (state, _) = copied.conversation("one").await.unwrap().unwrap().decode("one").unwrap();
    assert_eq!(state.messages.len(), 1);
    assert_eq!(copied.events("t", 1, 9).await.unwrap().len(), 2);
    assert_eq!(copied.task("t").await.unwrap().unwrap(), task("t", "one", TaskPhase::Working, 0));
    assert!(copied.pushes_pending().await.unwrap()[0].body.contains("s3cret"));
}

/// Everything is readable with the new key alone, also what was not encrypted; nothing is with the old key.
#[tokio::test]
async fn a_rotated_export_needs_the_new_key_only() {
    const NEW: &str = "k2:HxAeHRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgE=";
    let inner = Arc::new(MemoryStore::new());
    let store = encrypted(&inner).await;
    inner.commit(recorded(task("clear", "two", TaskPhase::Completed, 0))).await.unwrap();
    inner.commit(logged("clear", 1, 2)).await.unwrap();
    inner.change_facts(FactChange::Save(fact("clear", r#"{"fact":"likes coffee"}"#))).await.unwrap();
    fill(&store).await;
    store.send_control("t", ControlMessage { id: "stop".into(), body: "{}".into() }).await.unwrap();
    let before = readable(&store).await;

    let mut exported = tempfile::NamedTempFile::new().unwrap();
    export(inner.clone(), &mut exported).await.unwrap();
    let file = || ExportFile::open(exported.path()).unwrap();
    let mut rotated = tempfile::NamedTempFile::new().unwrap();
    let keys = Keyring::parse(&format!("{NEW}\n{KEYS}")).unwrap();
    let counts = rotate(file(), &keys, &mut rotated).await.unwrap();
    assert_eq!((counts.conversations, counts.tasks, counts.facts), (1, 2, 2));
    let text = std::fs::read_to_string(rotated.path()).unwrap();
    for absent in ["hello", "What changed", "s3cret", "likes", "enc1.k1."] {
        assert!(!text.contains(absent), "{absent} is in {text}");
    }
    let copied = Arc::new(MemoryStore::new());
    import(ExportFile::open(rotated.path()).unwrap(), &*copied, false).await.unwrap();
    let new = EncryptedStore::open(copied.clone(), Keyring::parse(NEW).unwrap()).await.unwrap();
    assert_eq!(readable(&new).await, before);
    let again = fact("f", r#"{"fact":"likes water"}"#);
    new.change_facts(FactChange::Save(again.clone())).await.unwrap();
    let forgotten = FactChange::Remove { owner: "ann".into(), id: "clear".into() };
    assert_eq!(new.change_facts(forgotten).await.unwrap(), 1);
    assert_eq!(new.facts("ann", time_of(2)).await.unwrap(), [again]);
    let error = EncryptedStore::open(copied, Keyring::parse(KEYS).unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("\"k2\""), "{error}");

    let without_old =
        rotate(file(), &Keyring::parse(NEW).unwrap(), Vec::new()).await.unwrap_err().to_string();
    assert!(without_old.contains("add that key"), "{without_old}");
}

/// Everything in a store as its users see it.
async fn readable(store: &dyn Store) -> String {
    let (mut tasks, mut logs) = (Vec::new(), Vec::new());
    for id in ["clear", "t"] {
        tasks.push(store.task(id).await.unwrap().unwrap());
        logs.push(store.events(id, 0, 9).await.unwrap());
    }
    let conversation = store.conversation("one").await.unwrap().unwrap();
    let (pushes, controls) = (store.pushes_of("t").await.unwrap(), store.controls("t", 0).await.unwrap());
    let facts = store.facts("ann", time_of(2)).await.unwrap();
    let facts: Vec<_> = facts.into_iter().map(|fact| (fact.id, fact.agent, fact.saved, fact.json)).collect();
    format!("{tasks:?} {logs:?} {conversation:?} {controls:?} {:?} {facts:?}", pushes[0].body)
}

#[tokio::test]
async fn a_moved_value_is_refused() {
    let inner = Arc::new(MemoryStore::new());
    fill(&encrypted(&inner).await).await;
    let moved = records(&inner).await.into_iter().map(|record| match record {
        Record::Conversation(mut conversation) => {
            conversation.context = "other".to_owned();
            Record::Conversation(conversation)
        }
        Record::Task(mut task) => {
            // Another principal would see the task.
            task.record = task.record.replace(r#""owner":null"#, r#""owner":"eve""#);
            Record::Task(task)
        }
        other => other,
    });
    let copied = copy(moved.collect()).await;
    let refused = EncryptedStore::open(copied.clone(), Keyring::parse(KEYS).unwrap()).await.unwrap_err();
    assert!(refused.to_string().contains("changed or moved"), "{refused}");
    let first = Arc::new(MemoryStore::new());
    let store = encrypted(&first).await;
    fill(&store).await;
    let moved = records(&first).await.into_iter().filter_map(|record| match record {
        Record::Conversation(mut conversation) => {
            conversation.context = "other".to_owned();
            Some(Record::Conversation(conversation))
        }
        _ => None,
    });
    let store = encrypted(&copy(moved.collect()).await).await;
    let refused = store.conversation("other").await.unwrap_err();
    assert!(refused.to_string().contains("changed or moved"), "{refused}");
}

#[tokio::test]
async fn values_from_before_are_read_and_then_encrypted() {
    let inner = Arc::new(MemoryStore::new());
    fill(&*inner).await;
    refuse_encrypted(&*inner).await.unwrap();
    let store = encrypted(&inner).await;
    assert_eq!(store.task("t").await.unwrap().unwrap(), task("t", "one", TaskPhase::Working, 0));
    assert_eq!(store.events("t", 0, 9).await.unwrap().len(), 3);
    store.commit(logged("t", 4, 1)).await.unwrap();
    assert_eq!(store.events("t", 2, 9).await.unwrap().len(), 2);
    store.commit(recorded(task("t", "one", TaskPhase::Completed, 1))).await.unwrap();
    let refused = refuse_encrypted(&*inner).await.unwrap_err().to_string();
    assert!(refused.contains("\"k1\"") && refused.contains("no keys are given"), "{refused}");
    assert!(inner.events("t", 3, 9).await.is_err(), "an event is readable without keys");
}
