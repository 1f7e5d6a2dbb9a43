//! Files of exports that are not complete, were changed, or are something else.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod samples;

use std::sync::Arc;

use caipe_store::{ExportFile, MemoryStore, RecordSource as _, Store as _, TaskPhase, export};
use samples::{logged, recorded, saved, task};

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
    for end in 1..whole.len() {
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
    let newer = refused(&whole.replacen(r#""version":1"#, r#""version":2"#, 1));
    assert!(newer.contains("the file was changed") || newer.contains("run a newer program"), "{newer}");
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
