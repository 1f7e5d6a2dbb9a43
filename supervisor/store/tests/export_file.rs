//! Files of exports that are not complete, were changed, or are something else.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod samples;

use std::sync::Arc;

use std::time::Instant;

use caipe_fixtures::redis::RedisServer;
use caipe_store::{
    Commit, ExportFile, MemoryStore, RecordSource as _, RedisOptions, RedisStore, SqliteStore, Store as _,
    TaskPhase, Transfer, export, import, verify,
};
use samples::{event, logged, recorded, saved, task, time_of};

async fn exported() -> String {
    let store = Arc::new(MemoryStore::new());
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
    store.commit(logged("t", 1, 3)).await.unwrap();
    store.commit(saved("one", "hello")).await.unwrap();
    let mut bytes = Vec::new();
    export(store, &mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Why a file with this content is refused.
fn refused(content: &str) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    ExportFile::open(file.path()).err().expect("it was accepted").to_string()
}

#[tokio::test]
async fn a_file_is_complete_or_clearly_not() {
    let whole = exported().await;
    assert_eq!(whole.lines().count(), 5, "{whole}");
    for end in (1..whole.len()).step_by(11).chain([whole.len() - 1]) {
        let Some(cut) = whole.get(..end) else { continue };
        let reason = refused(cut);
        assert!(reason.contains("did not complete") || reason.contains("no export"), "{end}: {reason}");
    }
}

#[tokio::test]
async fn a_changed_file_is_refused() {
    let whole = exported().await;
    for changed in [
        whole.replacen("hello", "hullo", 1),
        format!("{whole}{whole}"),
        whole
            .lines()
            .filter(|line| !line.starts_with(r#"{"events"#))
            .fold(String::new(), |all, line| all + line + "\n"),
    ] {
        let reason = refused(&changed);
        assert!(reason.contains("the file was changed"), "{reason}");
    }
    for other in ["", "\n", "{}\n", "SQLite format 3\0", r#"{"format":"other","version":1,"id":"a"}"#] {
        let reason = refused(other);
        assert!(reason.contains("no export of a store"), "{other}: {reason}");
    }
    let newer = refused(&whole.replacen(r#""version":2"#, r#""version":3"#, 1));
    assert!(newer.contains("it has version 3, this program knows 2; run a newer program"), "{newer}");
}

/// A file of version 1, which has no facts, is imported.
#[tokio::test]
async fn a_file_of_the_first_version_is_read() {
    let whole = exported().await;
    let first = whole.replacen(r#""version":2"#, r#""version":1"#, 1).replacen(r#","facts":0"#, "", 1);
    assert_eq!(first.len(), whole.len() - r#","facts":0"#.len());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), first).unwrap();
    let store = MemoryStore::new();
    let imported = import(ExportFile::open(file.path()).unwrap(), &store, false).await.unwrap();
    assert_eq!((imported.conversations, imported.tasks, imported.facts), (1, 1, 0));
}

#[tokio::test]
async fn the_records_are_between_the_header_and_the_end() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), exported().await).unwrap();
    let mut reader = ExportFile::open(file.path()).unwrap();
    let mut records = 0;
    while reader.next().await.unwrap().is_some() {
        records += 1;
    }
    assert_eq!(records, 3);
}

/// The most memory that this process has had, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

/// Prints how long copies of 100,000 tasks take, each with a conversation and 2 KiB of events, and the memory for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn copies_of_a_large_store() {
    const TASKS: usize = 100_000;
    let directory = tempfile::tempdir().unwrap();
    let source = Arc::new(SqliteStore::open(&directory.path().join("caipe.db")).unwrap());
    let numbers = futures::stream::iter(0..TASKS);
    let filling = futures::StreamExt::for_each_concurrent(numbers, 256, |number| {
        let source = source.clone();
        async move {
            let (id, context) = (format!("task-{number}"), format!("context-{number}"));
            source.commit(saved(&context, "What changed since yesterday?")).await.unwrap();
            let events = [event(&"x".repeat(2048))];
            let chunk = caipe_store::EventChunk::of(1, time_of(1), &events).unwrap();
            let commit = Commit { events: chunk.into_iter().collect(), ..logged(&id, 1, 1) };
            let record = task(&id, &context, TaskPhase::Completed, 7);
            source.commit(Commit { task: Some(record), ..commit }).await.unwrap();
        }
    });
    filling.await;
    let server = RedisServer::start(&[]).unwrap();
    let options = RedisOptions { url: server.url(), database: "copy".to_owned(), ..RedisOptions::default() };
    let target = RedisStore::open_alone(&options).unwrap();
    let path = directory.path().join("export.jsonl");
    let (before, begin) = (peak(), Instant::now());
    let to = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    export(source as Arc<dyn Transfer>, to).await.unwrap();
    let (exported, bytes) = (begin.elapsed(), std::fs::metadata(&path).unwrap().len() >> 20);
    let begin = Instant::now();
    let imported = import(ExportFile::open(&path).unwrap(), &target, false).await.unwrap();
    let importing = begin.elapsed();
    assert_eq!((imported.tasks, imported.left), (TASKS as u64, 0));
    let begin = Instant::now();
    let verified = verify(&mut ExportFile::open(&path).unwrap(), &target, &mut |_| {}).await.unwrap();
    let verifying = begin.elapsed();
    assert_eq!((verified.tasks, verified.differences), (TASKS as u64, 0));
    println!(
        "{bytes} MiB: export from SQLite {exported:.1?}, import to Redis {importing:.1?}, verify {verifying:.1?}"
    );
    println!("memory: {before} MiB before, at most {} MiB", peak());
}
