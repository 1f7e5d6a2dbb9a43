//! What was acknowledged is there after a kill in the middle of commits.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod samples;

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use caipe_store::{Commit, SqliteStore, Store, StoredConversation, TaskPhase};
use samples::{event, logged, recorded, saved, task};

const FILE: &str = "CAIPE_STORE_TEST_FILE";
const RUNS: usize = 8;

/// Not a test of its own: the process that gets killed. It says what was acknowledged, line by line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test below, in a process of its own"]
async fn commit_until_killed() {
    let path = PathBuf::from(std::env::var_os(FILE).expect("a file"));
    let store = SqliteStore::open(&path).unwrap();
    let runs = (0..RUNS).map(|run| write_run(&store, run));
    futures::future::join_all(runs).await;
}

async fn write_run(store: &SqliteStore, run: usize) {
    let id = format!("task-{run}");
    let context = format!("context-{run}");
    store.commit(recorded(task(&id, &context, TaskPhase::Working, 0))).await.unwrap();
    for step in 0.. {
        let last = (step + 1) * 3;
        let commit = Commit {
            conversation: saved("", &last.to_string()).conversation,
            context: context.clone(),
            ..logged(&id, step * 3 + 1, 3)
        };
        store.commit(commit).await.unwrap();
        println!("\nACK {run} {last}");
        std::io::stdout().flush().unwrap();
    }
}

/// A child that is not left behind, whatever becomes of the test.
struct Victim(Child);

impl Victim {
    fn start(path: &Path) -> (Self, BufReader<ChildStdout>) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "commit_until_killed", "--ignored", "--nocapture"])
            .env(FILE, path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        (Self(child), stdout)
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn acknowledged(line: &str) -> Option<(usize, u64)> {
    let (run, last) = line.strip_prefix("ACK ")?.split_once(' ')?;
    Some((run.parse().ok()?, last.parse().ok()?))
}

#[tokio::test]
async fn nothing_acknowledged_is_lost() {
    for lines_before_the_kill in [20, 150, 400] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("caipe.db");
        let (mut victim, stdout) = Victim::start(&path);
        let mut lines = stdout.lines().map_while(Result::ok).filter_map(|line| acknowledged(&line));
        let mut promised = [0; RUNS];
        for (run, last) in lines.by_ref().take(lines_before_the_kill) {
            promised[run] = last;
        }
        victim.kill();
        // What it said before it died, and nobody had read yet. A last line that is cut promises less.
        for (run, last) in lines {
            promised[run] = promised[run].max(last);
        }
        assert!(promised.iter().sum::<u64>() >= lines_before_the_kill as u64, "{promised:?}");
        check(&SqliteStore::open(&path).unwrap(), promised).await;
    }
}

async fn check(store: &SqliteStore, promised: [u64; RUNS]) {
    for (run, promised) in promised.into_iter().enumerate() {
        let log = store.events(&format!("task-{run}"), 0, usize::MAX).await.unwrap();
        let found = log.len() as u64;
        assert!(found >= promised, "run {run}: {found} of {promised} events");
        for (logged, seq) in log.iter().zip(1..) {
            assert_eq!((logged.seq, &logged.event), (seq, &event(&seq.to_string())), "run {run}");
        }
        // State and events are of one commit: never the one without the other.
        let state = store.conversation(&format!("context-{run}")).await.unwrap();
        let text = |stored: StoredConversation| stored.decode("").unwrap().0.messages[0].plain_text();
        let says = state.map_or_else(|| "0".to_owned(), text);
        assert_eq!(says, found.to_string(), "run {run}");
    }
}
