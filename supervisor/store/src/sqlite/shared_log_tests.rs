use std::path::Path;

use super::*;
use crate::samples::{event, logged, recorded, task};
use crate::sqlite::{SqliteStore, open, read, rows};
use crate::{Commit, LoggedEvent, Retention, Store, TaskPhase};

/// A file as the writer has it, without its thread: dropped, it leaves what a kill would leave.
struct File {
    connection: Connection,
    shared_log: SharedLog,
    _lock: std::fs::File,
}

impl File {
    fn open(path: &Path) -> Self {
        let lock = open::prepare(path).unwrap();
        let mut connection = open::for_writing(path).unwrap();
        // What is tested here survives a process, not the machine.
        connection.pragma_update(None, "synchronous", "OFF").unwrap();
        let shared_log = SharedLog::open(&mut connection, &Arc::default()).unwrap();
        Self { connection, shared_log, _lock: lock }
    }

    /// One transaction of these commits.
    fn commit(&mut self, commits: impl IntoIterator<Item = Commit>) {
        let written = |commit| Write::of(commit, jiff::Timestamp::UNIX_EPOCH).unwrap();
        let writes: Vec<_> = commits.into_iter().map(written).collect();
        let unsealed = self.shared_log.unsealed();
        let transaction = self.connection.transaction().unwrap();
        let mut staged = Staged::new(&unsealed);
        for write in &writes {
            rows::commit(&transaction, write, staged.last_seq_before(write)).unwrap();
            staged.take(write);
        }
        self.shared_log.commit(transaction, staged).unwrap();
    }

    fn begin(&mut self, tasks: &[&str]) {
        self.commit(tasks.iter().map(|id| recorded(task(id, id, TaskPhase::Working, 0))));
    }

    fn count(&self, table: &str) -> i64 {
        self.connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    fn events(&self, task: &str) -> Vec<LoggedEvent> {
        let tail = self.shared_log.unsealed.beyond(task, 0);
        read::events(&self.connection, task, tail.as_ref(), 0, usize::MAX).unwrap()
    }

    /// Each event has its number and its text.
    fn expect(&self, task: &str, count: u64) {
        let found: Vec<_> = self.events(task).into_iter().map(|logged| (logged.seq, logged.event)).collect();
        let wanted: Vec<_> = (1..=count).map(|seq| (seq, event(&seq.to_string()))).collect();
        assert_eq!(found, wanted, "{task}");
    }
}

fn ended(id: &str) -> Commit {
    recorded(task(id, id, TaskPhase::Completed, 1))
}

/// A commit of one event of this many bytes, or a few more.
fn large(task: &str, seq: u64, size: usize) -> Commit {
    Commit { events: vec![event(&"x".repeat(size))], ..logged(task, seq, 1) }
}

#[test]
fn a_transaction_is_one_row_until_a_task_rests() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = File::open(&directory.path().join("caipe.db"));
    file.begin(&["a", "b", "c"]);
    for first in [1, 3, 5] {
        file.commit(["a", "b", "c"].map(|task| logged(task, first, 2)));
    }
    assert_eq!((file.count("journal"), file.count("events")), (3, 0));
    file.commit([logged("a", 7, 2), ended("a"), logged("b", 7, 2)]);
    assert_eq!((file.count("journal"), file.count("events")), (4, 1));
    assert!(file.shared_log.unsealed.get("a").is_none(), "it takes memory");
    file.commit([logged("a", 9, 1)]);
    for (task, count) in [("a", 9), ("b", 8), ("c", 6)] {
        file.expect(task, count);
    }
}

#[test]
fn what_a_killed_process_left_goes_where_it_belongs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let mut file = File::open(&path);
    file.begin(&["a", "b"]);
    file.commit(["a", "b"].map(|task| logged(task, 1, 2)));
    // In the shared log still, but sealed.
    file.commit([logged("a", 3, 2), ended("a")]);
    file.commit(["a", "b"].map(|task| logged(task, if task == "a" { 5 } else { 3 }, 1)));
    drop(file);
    for _ in 0..2 {
        let file = File::open(&path);
        assert_eq!((file.count("journal"), file.shared_log.unsealed.tasks().len()), (0, 0));
        file.expect("a", 5);
        file.expect("b", 3);
    }
}

#[test]
fn the_shared_log_stays_short_however_slow_one_log_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let mut file = File::open(&path);
    let busy: Vec<_> = (0..100).map(|number| format!("busy-{number}")).collect();
    file.begin(&["slow"]);
    file.begin(&busy.iter().map(String::as_str).collect::<Vec<_>>());
    file.commit([logged("slow", 1, 1)]);
    let mut longest = 0;
    for seq in 1..=100 {
        file.commit(busy.iter().map(|task| large(task, seq, 2_000)));
        let size = "SELECT coalesce(sum(length(entries)), 0) FROM journal";
        longest = longest.max(file.connection.query_row(size, [], |row| row.get(0)).unwrap());
    }
    let bound = LONGEST_SHARED_LOG + REMOVED_AT_ONCE + 300_000;
    assert!((REMOVED_AT_ONCE..bound).contains(&longest), "{longest} bytes");
    assert!(file.shared_log.unsealed.get("slow").is_none(), "it holds the shared log back");
    file.commit([logged("slow", 2, 1)]);
    drop(file);
    let file = File::open(&path);
    file.expect("slow", 2);
    for task in &busy {
        assert_eq!(file.events(task).len(), 100, "{task}");
    }
}

#[test]
fn what_is_large_is_written_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = File::open(&directory.path().join("caipe.db"));
    file.begin(&["t"]);
    file.commit([logged("t", 1, 2)]);
    file.commit([large("t", 3, PAGE)]);
    assert_eq!((file.count("journal"), file.count("events")), (1, 1));
    let seqs = file.events("t").into_iter().map(|logged| logged.seq);
    assert_eq!(seqs.collect::<Vec<_>>(), [1, 2, 3]);
}

/// Whatever keeps one log from being sealed, such as a damaged page, is nobody else's failure.
#[test]
fn a_log_that_cannot_be_sealed_stays_in_the_shared_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let mut file = File::open(&path);
    let picky = "CREATE TRIGGER picky BEFORE INSERT ON events WHEN new.task = 'bad'
        BEGIN SELECT raise(ABORT, 'not this one'); END";
    file.connection.execute_batch(picky).unwrap();
    file.begin(&["bad", "good"]);
    file.commit(["bad", "good"].map(|task| logged(task, 1, 2)));
    file.commit([logged("bad", 3, 1), ended("bad"), ended("good")]);
    assert_eq!(file.count("events"), 1);
    assert_eq!(file.shared_log.unsealed.sealable("bad"), None, "it is tried again and again");
    drop(file);
    let mut file = File::open(&path);
    file.commit([logged("bad", 4, 1)]);
    file.expect("bad", 4);
    file.expect("good", 2);
    drop(file);
    Connection::open(&path).unwrap().execute_batch("DROP TRIGGER picky").unwrap();
    let file = File::open(&path);
    assert_eq!((file.count("journal"), file.count("events")), (0, 2));
    file.expect("bad", 4);
}

/// Else a task of the same id would find events of the one that went.
#[tokio::test]
async fn what_is_pruned_is_not_in_the_shared_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let store = SqliteStore::open(&path).unwrap();
    for id in ["a", "b"] {
        store.commit(recorded(task(id, id, TaskPhase::Working, 0))).await.unwrap();
        store.commit(logged(id, 1, 2)).await.unwrap();
    }
    store.commit(ended("a")).await.unwrap();
    store.commit(logged("a", 3, 1)).await.unwrap();
    let all = Retention { tasks_before: Some(jiff::Timestamp::MAX), ..Retention::default() };
    assert_eq!(store.prune(all).await.unwrap().tasks, 1);
    assert!(store.events("a", 0, 10).await.unwrap().is_empty());
    let other = Connection::open(&path).unwrap();
    let rows: i64 = other.query_row("SELECT count(*) FROM journal", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
    assert_eq!(store.events("b", 0, 10).await.unwrap().len(), 2);
}
