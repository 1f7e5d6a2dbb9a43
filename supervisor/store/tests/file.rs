//! The SQLite file: what survives, who may have it, and what is said when it cannot be used.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod samples;

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use caipe_store::{Retention, SqliteStore, Store, StoreError, TaskPhase};
use rusqlite::Connection;
use samples::{logged, recorded, saved, state, task};

fn refused(path: &Path) -> StoreError {
    let error = SqliteStore::open(path).expect_err("it should not open");
    let named = error.to_string();
    assert!(named.contains(path.to_str().unwrap()), "does not name the file: {named}");
    error
}

#[tokio::test]
async fn all_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er/caipe.db");
    let record = task("t", "one", TaskPhase::Working, 0);
    let store = SqliteStore::open(&path).unwrap();
    store.commit(saved("one", "hello")).await.unwrap();
    store.commit(recorded(record.clone())).await.unwrap();
    store.commit(logged("t", 1, 3)).await.unwrap();
    store.close().await.unwrap();

    let store = SqliteStore::open(&path).unwrap();
    let found = store.conversation("one").await.unwrap().expect("the conversation");
    assert_eq!(found.decode("one").unwrap().0, state("hello"));
    assert_eq!(store.task("t").await.unwrap(), Some(record));
    assert_eq!(store.events("t", 1, 10).await.unwrap().len(), 2);
    store.commit(logged("t", 4, 1)).await.unwrap();
}

#[tokio::test]
async fn closing_writes_what_waits_and_ends_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let store = SqliteStore::open(&path).unwrap();
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
    let waiting = (0..100).map(|number| store.commit(logged("t", number * 2 + 1, 2)));
    let (outcomes, closed) = futures::join!(futures::future::join_all(waiting), store.close());
    closed.unwrap();
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    for error in [
        store.commit(logged("t", 201, 1)).await.unwrap_err(),
        store.task("t").await.unwrap_err(),
        store.healthy().await.unwrap_err(),
        store.close().await.unwrap_err(),
    ] {
        assert_eq!(error.category(), "unavailable", "{error}");
    }
    // The file alone is whole: its log is folded in.
    let moved = directory.path().join("moved.db");
    fs::rename(&path, &moved).unwrap();
    let store = SqliteStore::open(&moved).unwrap();
    assert_eq!(store.events("t", 0, 1000).await.unwrap().len(), 200);
}

#[tokio::test]
async fn a_file_that_is_damaged_while_it_is_open_is_not_healthy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let store = SqliteStore::open(&path).unwrap();
    store.commit(saved("one", "hello")).await.unwrap();
    store.healthy().await.unwrap();
    for file in [path.clone(), path.with_extension("db-wal")] {
        let length = fs::metadata(&file).unwrap().len();
        fs::write(&file, vec![0x5a; usize::try_from(length).unwrap()]).unwrap();
    }
    let error = store.healthy().await.unwrap_err();
    assert!(error.to_string().contains("restore the file from a backup"), "{error}");
}

#[test]
fn the_file_is_for_its_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data/caipe.db");
    let _store = SqliteStore::open(&path).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn a_second_user_is_refused_until_the_first_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let first = SqliteStore::open(&path).unwrap();
    let error = refused(&path);
    assert!(error.to_string().contains("another process uses it"), "{error}");
    assert_eq!(error.category(), "unavailable");
    first.close().await.unwrap();
    SqliteStore::open(&path).unwrap();
}

#[tokio::test]
async fn others_may_read_while_it_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let store = SqliteStore::open(&path).unwrap();
    store.commit(saved("one", "hello")).await.unwrap();
    let other = Connection::open(&path).unwrap();
    let text: String =
        other.query_row("SELECT item ->> '$.parts[0].text' FROM items", [], |row| row.get(0)).unwrap();
    assert_eq!(text, "hello");
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let text = "this is not a database, but somebody's notes\n".repeat(100);
    fs::write(&path, &text).unwrap();
    let error = refused(&path);
    assert_eq!(error.category(), "corrupt", "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);

    let foreign = directory.path().join("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE tasks (todo TEXT)").unwrap();
    let error = refused(&foreign);
    assert!(error.to_string().contains("another program"), "{error}");
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    SqliteStore::open(&path).unwrap().close().await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 1000).unwrap();
    drop(other);
    let error = refused(&path);
    assert!(error.to_string().contains("version 1000"), "{error}");
    assert!(error.to_string().contains("run a newer program"), "{error}");
}

#[tokio::test]
async fn a_damaged_page_is_reported_and_the_rest_still_works() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let store = SqliteStore::open(&path).unwrap();
    store.commit(saved("one", &"x".repeat(100_000))).await.unwrap();
    store.close().await.unwrap();
    damage(&path, "items");

    let store = SqliteStore::open(&path).unwrap();
    let error = store.conversation("one").await.unwrap_err();
    assert_eq!(error.category(), "corrupt", "{error}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
    assert!(store.task("t").await.unwrap().is_some());
}

/// Overwrites the first page of a table.
fn damage(path: &Path, table: &str) {
    let other = Connection::open(path).unwrap();
    let sql = "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?1";
    let (page, size): (u64, u64) = other
        .query_row(sql, [table], |row| {
            Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get::<_, i64>(1)?.unsigned_abs()))
        })
        .unwrap();
    drop(other);
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[0xa5; 4096], (page - 1) * size).unwrap();
}

#[tokio::test]
async fn a_value_that_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let store = SqliteStore::open(&path).unwrap();
    store.commit(saved("one", "hello")).await.unwrap();
    store.commit(saved("two", "hello")).await.unwrap();
    Connection::open(&path)
        .unwrap()
        .execute("UPDATE conversations SET state = '{' WHERE context = 'one'", [])
        .unwrap();
    let error = store.conversation("one").await.unwrap().unwrap().decode("one").unwrap_err();
    assert!(error.to_string().contains("the state of \"one\""), "{error}");
    assert!(store.conversation("two").await.unwrap().is_some());
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(refused(directory.path()).to_string().contains("is a directory"));
    assert!(refused(&file.join("caipe.db")).to_string().contains("failed to make the directory"));
    // No mode keeps root out, so that the directory is one that nobody can write to.
    #[cfg(target_os = "linux")]
    {
        assert!(
            refused(Path::new("/proc/caipe/caipe.db")).to_string().contains("failed to make the directory")
        );
        assert!(refused(Path::new("/proc/caipe.db")).to_string().contains("failed to open"));
    }
}

#[tokio::test]
async fn one_failure_in_a_group_is_nobody_elses() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let store = SqliteStore::open(&path).unwrap();
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
    // A trigger of the test makes SQLite fail in the middle of a commit.
    let other = Connection::open(&path).unwrap();
    let trigger = "CREATE TRIGGER picky BEFORE INSERT ON conversations WHEN new.context = 'bad'
        BEGIN SELECT raise(ABORT, 'not this one'); END";
    other.execute_batch(trigger).unwrap();
    let commits = ["a", "bad", "b", "bad", "c"].map(|context| {
        let mut commit = saved(context, "hello");
        commit.task = Some(task(context, context, TaskPhase::Working, 0));
        store.commit(commit)
    });
    let outcomes = futures::future::join_all(commits).await;
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, false, true]);
    assert!(outcomes[1].as_ref().unwrap_err().to_string().contains("not this one"));
    for (context, there) in [("a", true), ("bad", false), ("b", true), ("c", true)] {
        assert_eq!(store.conversation(context).await.unwrap().is_some(), there, "{context}");
        assert_eq!(store.task(context).await.unwrap().is_some(), there, "{context}");
    }
}

#[tokio::test]
async fn space_is_used_again_after_a_prune() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let store = SqliteStore::open(&path).unwrap();
    let text = "x".repeat(1 << 20);
    let mut sizes = Vec::new();
    for _ in 0..5 {
        for number in 0..4 {
            store.commit(saved(&format!("{number}"), &text)).await.unwrap();
        }
        let all = Retention { conversations_before: Some(jiff::Timestamp::MAX), ..Retention::default() };
        assert_eq!(store.prune(all).await.unwrap().conversations, 4);
        sizes.push(fs::metadata(&path).unwrap().len());
    }
    assert!(sizes.iter().all(|size| *size < 8 << 20), "{sizes:?}");
}
