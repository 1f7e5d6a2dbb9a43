//! What each database guarantees. A database is opened twice, for two processes; with SQLite the first one has ended.

use std::path::Path;
use std::time::Duration;

use caipe_fixtures::redis::RedisServer;

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

fn redis(server: &RedisServer, lease: Duration) -> Redis {
    let options =
        RedisOptions { url: server.url(), database: "test".to_owned(), certificate_authority: None };
    Redis::open(&options, lease).unwrap()
}

fn sqlite(directory: &Path) -> Sqlite {
    Sqlite::open(&directory.join("slack.sqlite3")).unwrap()
}

#[tokio::test]
async fn sqlite_keeps_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    keeps_the_contract(sqlite(directory.path()), || sqlite(directory.path())).await;
}

#[tokio::test]
async fn redis_keeps_the_contract() {
    let server = RedisServer::start(&[]).unwrap();
    let open = || redis(&server, Duration::from_millis(200));
    keeps_the_contract(open(), open).await;
}

async fn keeps_the_contract<S: Store>(first: S, next: impl Fn() -> S) {
    remembers(&first).await;
    finds_running_turns(&first).await;
    assert!(first.begin_turn("a", "{\"step\":1}").await.unwrap());
    assert!(first.save_turn("a", "{\"step\":2}").await.unwrap());
    assert!(first.begin_turn("b", "{}").await.unwrap());
    first.remove_turn("b").await.unwrap();
    drop(first);
    let second = next();
    assert!(!second.is_new("delivery").await.unwrap());
    assert_eq!(second.last_answer("U1").await.unwrap().as_deref(), Some("t2"));
    assert_eq!(adopted(&second).await, ["{\"step\":2}"]);
    assert!(second.save_turn("a", "{\"step\":3}").await.unwrap());
    assert!(second.adopt_turns().await.unwrap().is_empty());
    second.remove_turn("a").await.unwrap();
    drop(second);
    assert!(next().adopt_turns().await.unwrap().is_empty());
}

async fn remembers(store: &impl Store) {
    assert!(store.is_new("delivery").await.unwrap());
    assert!(!store.is_new("delivery").await.unwrap());
    assert_eq!(store.thread("C1", "1.0").await.unwrap(), None);
    let thread = Thread {
        context: Some("c".to_owned()),
        last_seen: Some("1.1".to_owned()),
        skipped: true,
        waiting: Some(("t".to_owned(), "U1".to_owned())),
    };
    for thread in [thread, Thread::default()] {
        store.save_thread("C1", "1.0", &thread).await.unwrap();
        assert_eq!(store.thread("C1", "1.0").await.unwrap(), Some(thread));
    }
    assert!(store.escalate("C1", "1.0").await.unwrap() && store.escalate("C1", "2.0").await.unwrap());
    assert!(!store.escalate("C1", "1.0").await.unwrap());
    assert_eq!(store.last_answer("U1").await.unwrap(), None);
    for task in ["t1", "t2"] {
        store.save_answer("U1", task).await.unwrap();
    }
    store.forget_old().await.unwrap();
    assert_eq!(store.last_answer("U1").await.unwrap().as_deref(), Some("t2"));
}

async fn finds_running_turns(store: &impl Store) {
    let turn = |task: &str| Running {
        channel: "C1".to_owned(),
        thread: "1.0".to_owned(),
        task: task.to_owned(),
        user: "U1".to_owned(),
        question: "1.1".to_owned(),
    };
    for task in ["t1", "t2"] {
        store.set_running(&turn(task)).await.unwrap();
    }
    store.remove_running("C1", "1.0", "t1").await.unwrap();
    assert_eq!(store.running_in("C1", "1.0").await.unwrap(), Some(turn("t2")));
    assert_eq!(store.running().await.unwrap(), [turn("t2")]);
    store.remove_running("C1", "1.0", "t2").await.unwrap();
    assert_eq!(store.running_in("C1", "1.0").await.unwrap(), None);
}

/// The turns of a process that has ended, once its lease is over.
async fn adopted(store: &impl Store) -> Vec<String> {
    let adopt = async {
        loop {
            let turns = store.adopt_turns().await.unwrap();
            if !turns.is_empty() {
                return turns;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, adopt).await.unwrap()
}

#[tokio::test]
async fn a_process_without_a_lease_loses_its_turns_and_cannot_begin_them_again() {
    let server = RedisServer::start(&[]).unwrap();
    let [slow, other] = [(); 2].map(|()| redis(&server, Duration::from_millis(200)));
    assert!(slow.begin_turn("a", "{}").await.unwrap());
    assert!(!other.begin_turn("a", "{}").await.unwrap());
    assert_eq!(adopted(&other).await, ["{}"]);
    assert!(!slow.save_turn("a", "{}").await.unwrap());
    slow.remove_turn("a").await.unwrap();
    assert!(other.save_turn("a", "{}").await.unwrap());
    other.remove_turn("a").await.unwrap();
    assert!(!slow.save_turn("a", "{}").await.unwrap());
}

#[tokio::test]
async fn a_process_that_ends_gives_its_turns_up_at_once() {
    let server = RedisServer::start(&[]).unwrap();
    let [first, second] = [(); 2].map(|()| redis(&server, Duration::from_hours(1)));
    assert!(first.begin_turn("a", "{}").await.unwrap());
    assert!(second.adopt_turns().await.unwrap().is_empty());
    first.release().await.unwrap();
    assert_eq!(second.adopt_turns().await.unwrap(), ["{}"]);
}
