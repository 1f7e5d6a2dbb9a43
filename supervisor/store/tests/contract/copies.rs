//! Exports, imports and comparisons.

use std::path::PathBuf;
use std::sync::Arc;

use caipe_store::{
    Commit, ControlMessage, ExportFile, FactChange, FactRecord, Fence, ImportBatch, MemoryStore, OutboxEntry,
    PushRecord, Record, RecordKind, RecordSource as _, SavedConversation, Store, StoreError, StoreReader,
    TaskPhase, TaskRecord, Transfer, TransferError, export, import, refuse_unfinished, verify,
};
use jiff::Timestamp;
use tempfile::TempDir;

use crate::facts::{at, fact, save};
use crate::samples::{changed, logged, recorded, saved, state, task, term, time_of};

fn owned(id: &str, context: &str, phase: TaskPhase, owner: &str) -> TaskRecord {
    TaskRecord { owner: Some(owner.to_owned()), ..task(id, context, phase, 7) }
}

/// Stores some of everything.
async fn fill(store: &dyn Store) {
    let begun = recorded(owned("waits", "one", TaskPhase::InputRequired, "ann"));
    store.commit(Commit { create: Some(term("a")), ..begun }).await.unwrap();
    let before = SavedConversation::of(&state("Zoë \u{1f680} \"says\"\n"));
    store.commit(saved("one", "Zoë \u{1f680} \"says\"\n")).await.unwrap();
    let mut longer = state("Zoë \u{1f680} \"says\"\n");
    longer.messages.extend(state("more").messages);
    longer.files = Arc::new([("notes/a b.md".to_owned(), "text\n".to_owned())].into());
    store.commit(changed("one", &before, &longer)).await.unwrap();
    // Chunks with a gap, and more of them than fit in one page.
    for number in 0..100 {
        store.commit(logged("waits", 1 + number * 3, 2)).await.unwrap();
    }
    store.commit(recorded(owned("alone", "never committed", TaskPhase::Completed, "bob"))).await.unwrap();
    store.commit(recorded(task("free", "free", TaskPhase::Working, 9))).await.unwrap();
    store.commit(saved("free", "hello")).await.unwrap();
    let lease = store.acquire("free", &term("b")).await.unwrap();
    for id in ["first", "second", "third"] {
        let message = ControlMessage { id: id.into(), body: r#"{"cancel":true}"#.into() };
        store.send_control("free", message).await.unwrap();
    }
    let entry = OutboxEntry {
        task: "free".into(),
        id: "cancel:1".into(),
        body: "to do it".into(),
        deadline: time_of(5),
    };
    let (token, task) = (lease.token, "free".to_owned());
    let fence = Fence { task, token, number: 4, reserved: 2048, handled: 1, release: false };
    store.commit(Commit { outbox: vec![entry], fence: Some(fence), ..Commit::default() }).await.unwrap();
    for (id, delivered) in [("b", 3), ("a", PushRecord::DONE)] {
        let push = PushRecord { task: "waits".into(), id: id.into(), body: "{}".into(), delivered };
        store.put_push(push).await.unwrap();
    }
    remember(store).await;
}

/// How many facts [`remember`] saves that do not expire soon, and how many of them expire at all.
const FACTS: u64 = 141;
const EXPIRING: u64 = 71;

/// Saves facts about more people than are in a page, and about one person more facts than that. Some have expired.
async fn remember(store: &dyn Store) {
    let saved = Timestamp::from_microsecond(1_700_000_000_000_001).unwrap();
    let expires = Some("2222-02-02T00:00:00.000001Z".parse().unwrap());
    for number in 0..70 {
        let fact = fact("ann", &format!("fact-{number}"), r#"{"fact":"Zoë \u0000"}"#);
        save(store, &FactRecord { saved, expires, ..fact }).await;
        save(store, &fact_of(&format!("person {number}"))).await;
    }
    save(store, &FactRecord { expires, ..fact_of("[null,\"Zoë\"]") }).await;
    for owner in ["ann", "gone"] {
        save(store, &FactRecord { expires: Some(saved), ..fact(owner, "expired", "{}") }).await;
    }
}

fn fact_of(owner: &str) -> FactRecord {
    FactRecord { agent: "github".into(), ..fact(owner, "a", "{}") }
}

/// Those about whom the store lists facts.
async fn owners(store: &dyn Transfer) -> Vec<String> {
    let (mut owners, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_ids(RecordKind::FactOwner, after.as_deref(), 3).await.unwrap();
        owners.extend(page.ids);
        after = page.next;
        if after.is_none() {
            return owners;
        }
    }
}

/// An export in a file.
struct Saved(TempDir);

impl Saved {
    async fn of(store: &Arc<dyn Transfer>) -> Self {
        let saved = Self(tempfile::tempdir().unwrap());
        let file = std::fs::File::create(saved.path()).unwrap();
        export(store.clone(), file).await.unwrap();
        saved
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("export.jsonl")
    }

    fn file(&self) -> ExportFile {
        ExportFile::open(&self.path()).unwrap()
    }
}

fn memory() -> Arc<dyn Transfer> {
    Arc::new(MemoryStore::new())
}

/// The differences between a store and another one.
async fn differences(one: &Arc<dyn Transfer>, other: &Arc<dyn Transfer>) -> Vec<String> {
    let mut found = Vec::new();
    let mut reader = StoreReader::new(one.clone());
    let verified =
        verify(&mut reader, &**other, &mut |difference| found.push(difference.to_owned())).await.unwrap();
    assert_eq!(verified.differences, found.len() as u64);
    found
}

/// From the store to a file to memory, and from there to a file and to the store.
pub(super) async fn a_copy_has_everything(store: &Arc<dyn Transfer>) {
    let source = memory();
    fill(&*source).await;
    let file = Saved::of(&source).await;
    let imported = import(file.file(), &**store, false).await.unwrap();
    assert_eq!((imported.conversations, imported.tasks, imported.left), (2, 3, 0));
    assert_eq!(imported.facts, FACTS);
    assert_eq!(differences(&source, store).await, [""; 0]);
    assert_eq!(differences(store, &source).await, [""; 0]);
    let back = memory();
    let file = Saved::of(store).await;
    import(file.file(), &*back, false).await.unwrap();
    assert_eq!(differences(&source, &back).await, [""; 0]);
    let verified = verify(&mut file.file(), &**store, &mut |_| {}).await.unwrap();
    assert_eq!((verified.conversations, verified.tasks, verified.differences), (2, 3, 0));
    assert_eq!(verified.facts, FACTS);

    // The copy can be used: the run under way has no owner, and continues above what was shown.
    let abandoned = store.abandoned(9).await.unwrap();
    assert_eq!(abandoned.iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), ["free"]);
    let lease = store.acquire("free", &term("c")).await.unwrap();
    assert_eq!((lease.token, lease.reserved, lease.has_controls), (2, 2048, true));
    let waiting = store.controls("free", 0).await.unwrap();
    assert_eq!(waiting.iter().map(|control| control.number).collect::<Vec<_>>(), [2, 3]);
    let again = ControlMessage { id: "first".into(), body: "{}".into() };
    store.send_control("free", again).await.unwrap();
    assert_eq!(store.controls("free", 0).await.unwrap().len(), 2, "a handled message came again");
    assert_eq!(store.outbox().await.unwrap()[0].id, "cancel:1");
    assert_eq!(store.pushes_pending().await.unwrap().len(), 1);
    assert_eq!(store.events("waits", 297, 9).await.unwrap().len(), 2);
    let foreign = recorded(owned("new", "one", TaskPhase::Submitted, "bob"));
    let foreign = store.commit(Commit { create: Some(term("a")), ..foreign }).await;
    assert!(matches!(foreign, Err(StoreError::ForeignConversation { .. })), "{foreign:?}");
    let (conversation, _) = store.conversation("one").await.unwrap().unwrap().decode("one").unwrap();
    assert_eq!((conversation.messages.len(), conversation.files.len()), (2, 1));
}

/// Copied facts are found, expire, and can be forgotten.
pub(super) async fn copied_facts_are_those_of_their_owners(store: &Arc<dyn Transfer>) {
    let source = memory();
    remember(&*source).await;
    import(Saved::of(&source).await.file(), &**store, false).await.unwrap();
    for owner in ["ann", "person 7", "[null,\"Zoë\"]", "gone"] {
        let expected = source.facts(owner, Timestamp::now()).await.unwrap();
        assert_eq!(store.facts(owner, at(0)).await.unwrap(), expected, "{owner}");
    }
    let mut again = fact_of("person 7");
    again.saved = at(9);
    save(&**store, &again).await;
    assert_eq!(store.facts("person 7", at(9)).await.unwrap(), [again]);
    let at_last = FactChange::RemoveExpired("2222-02-03T00:00:00Z".parse().unwrap());
    assert_eq!(store.change_facts(at_last).await.unwrap(), EXPIRING);
    let all = FactChange::RemoveAll { owner: "person 7".into() };
    assert_eq!(store.change_facts(all).await.unwrap(), 1);
    let last = FactChange::Remove { owner: "person 9".into(), id: "a".into() };
    assert_eq!(store.change_facts(last).await.unwrap(), 1);
    let mut expected: Vec<_> =
        (0..70).filter(|it| ![7, 9].contains(it)).map(|it| format!("person {it}")).collect();
    expected.sort_unstable();
    assert_eq!(owners(&**store).await, expected);
}

/// A store that has only facts is not empty.
pub(super) async fn facts_are_never_replaced(store: &Arc<dyn Transfer>) {
    let other = fact("person 7", "a", "other");
    save(&**store, &other).await;
    let source = memory();
    remember(&*source).await;
    let file = Saved::of(&source).await;
    let refused = import(file.file(), &**store, false).await.unwrap_err();
    assert!(refused.to_string().contains("--merge"), "{refused}");
    for left in [1, FACTS] {
        let imported = import(file.file(), &**store, true).await.unwrap();
        assert_eq!((imported.facts, imported.left), (FACTS, left));
    }
    assert_eq!(store.facts("person 7", at(0)).await.unwrap(), [other]);
}

pub(super) async fn an_interrupted_import_continues(store: &Arc<dyn Transfer>) {
    let source = memory();
    fill(&*source).await;
    let file = Saved::of(&source).await;
    let mut records = Vec::new();
    let mut reader = file.file();
    while let Some(record) = reader.next().await.unwrap() {
        records.push(record);
    }
    // Up to the middle of the events of a task.
    let cut = records.iter().rposition(|record| matches!(record, Record::Events(_))).unwrap();
    let batch = ImportBatch { export: reader.id().to_owned(), begin: 0, records: records[..cut].to_vec() };
    store.begin_import(reader.id()).await.unwrap();
    store.import(batch.clone()).await.unwrap();
    let refused = store.import(batch).await.unwrap_err();
    assert!(refused.to_string().contains("one import at a time"), "{refused}");
    let unfinished = refuse_unfinished(&**store).await.unwrap_err().to_string();
    assert!(unfinished.contains(reader.id()) && unfinished.contains("again"), "{unfinished}");
    assert!(export(store.clone(), Vec::new()).await.is_err(), "an incomplete store was exported");
    assert!(!differences(&source, store).await.is_empty());
    let different = memory();
    fill(&*different).await;
    different.commit(saved("other", "other")).await.unwrap();
    let other = Saved::of(&different).await;
    let refused = import(other.file(), &**store, true).await.unwrap_err();
    assert!(matches!(refused, TransferError::OtherImport { .. }), "{refused}");

    // Another export of the same content continues it.
    let imported = import(Saved::of(&source).await.file(), &**store, false).await.unwrap();
    assert_eq!((imported.continued_after, imported.left), (cut as u64, 0));
    assert_eq!(differences(&source, store).await, [""; 0]);
    refuse_unfinished(&**store).await.unwrap();
}

pub(super) async fn content_is_never_replaced(store: &Arc<dyn Transfer>) {
    store.commit(recorded(task("waits", "one", TaskPhase::Completed, 1))).await.unwrap();
    store.commit(logged("waits", 1, 1)).await.unwrap();
    let source = memory();
    fill(&*source).await;
    let file = Saved::of(&source).await;
    let refused = import(file.file(), &**store, false).await.unwrap_err();
    assert!(refused.to_string().contains("--merge"), "{refused}");
    let imported = import(file.file(), &**store, true).await.unwrap();
    assert_eq!((imported.tasks, imported.left), (3, 1));
    assert_eq!(store.task("waits").await.unwrap().unwrap().phase, TaskPhase::Completed);
    assert_eq!(store.events("waits", 0, 99).await.unwrap().len(), 1, "two logs are mixed");
    assert!(store.conversation("free").await.unwrap().is_some());
    let again = import(file.file(), &**store, true).await.unwrap();
    assert_eq!(again.left, 5 + FACTS);
}

pub(super) async fn each_difference_is_reported(store: &Arc<dyn Transfer>) {
    let source = memory();
    fill(&*source).await;
    import(Saved::of(&source).await.file(), &**store, false).await.unwrap();
    store.settle("free", "cancel:1").await.unwrap();
    store.push_delivered("waits", "b", 4).await.unwrap();
    store.commit(logged("waits", 301, 1)).await.unwrap();
    store.commit(saved("one", "other")).await.unwrap();
    store.commit(recorded(task("more", "one", TaskPhase::Completed, 1))).await.unwrap();
    source.commit(saved("lost", "gone")).await.unwrap();
    save(&**store, &FactRecord { expires: None, ..fact("ann", "fact-1", "other") }).await;
    save(&**store, &FactRecord { agent: "jira".into(), ..fact_of("person 1") }).await;
    save(&**store, &fact("ann", "more", "{}")).await;
    save(&**store, &fact("new", "more", "{}")).await;
    save(&**store, &FactRecord { expires: Some(time_of(1)), ..fact("new", "expired", "{}") }).await;
    save(&*source, &fact_of("lost")).await;
    let mut found = differences(&source, store).await;
    found.sort();
    found.retain(|difference| !difference.contains("time of the last write"));
    assert_eq!(
        found,
        [
            "conversation lost: missing in the store",
            "conversation one: different messages or files",
            "fact a about lost: missing in the store",
            "fact a about person 1: different agent",
            "fact fact-1 about ann: different content",
            "fact fact-1 about ann: different times",
            "fact more about ann: only in the store",
            "fact more about new: only in the store",
            "task free: different outbox",
            "task more: only in the store",
            "task waits: different fencing token",
            "task waits: different push configurations",
            "the events of task waits: only in the store from number 301 on",
        ]
    );
}
