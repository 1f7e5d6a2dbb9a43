//! The Redis store with a server in trouble, and with several processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod samples;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use caipe_fixtures::redis::RedisServer;
use caipe_fixtures::tcp_proxy::Link;
use caipe_store::{
    Commit, ControlMessage, EventChunk, Follower, RedisOptions, RedisStore, Store, StoreError, TaskFilter,
    TaskPhase, Topic,
};
use samples::{event, logged, recorded, task, term, time_of};
use tokio::time::timeout;

fn options(url: String) -> RedisOptions {
    RedisOptions { url, database: "caipe".to_owned(), ..RedisOptions::default() }
}

fn open(url: String) -> RedisStore {
    RedisStore::open(&options(url)).unwrap()
}

async fn command(server: &RedisServer, words: &[&str]) {
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.query_async::<redis::Value>(&mut connection).await.unwrap();
}

/// The error of a write, which is worth another attempt.
async fn trouble(store: &RedisStore) -> String {
    let error = store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap_err();
    assert!(error.is_transient() && store.healthy().await.is_err(), "{error}");
    error.to_string()
}

async fn begin(store: &dyn Store) {
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_away_is_used_once_it_is_back() {
    let mut server = RedisServer::start(&[]).unwrap();
    let store = open(server.url());
    server.kill().unwrap();
    let reason = trouble(&store).await;
    assert!(reason.contains(&server.address()), "{reason}");
    server.restart().unwrap();
    begin(&store).await;
    store.healthy().await.unwrap();
    server.kill().unwrap();
    trouble(&store).await;
    server.restart().unwrap();
    // What was acknowledged is there, and it continues.
    store.commit(logged("t", 1, 3)).await.unwrap();
    assert_eq!(store.events("t", 0, 10).await.unwrap().len(), 3);
}

/// A commit whose response was lost with the connection is sent again, and acts once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_connections_neither_lose_nor_repeat_a_commit() {
    let server = RedisServer::start(&[]).unwrap();
    let store = open(server.url());
    let made = async {
        for number in 0..40 {
            let record = task(&number.to_string(), "one", TaskPhase::Working, 0);
            store.commit(Commit { create: Some(term("a")), ..recorded(record) }).await.unwrap();
            store.commit(logged(&number.to_string(), 1, 2)).await.unwrap();
        }
    };
    let cut = async {
        for _ in 0..40 {
            command(&server, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
        }
    };
    tokio::join!(made, cut);
    let tasks = store.tasks(&TaskFilter::default()).await.unwrap();
    assert_eq!(tasks.len(), 40);
    for record in tasks {
        assert_eq!(store.events(&record.id, 0, 10).await.unwrap().len(), 2, "{}", record.id);
    }
}

#[tokio::test]
async fn a_server_that_refuses_says_what_to_do() {
    let server = RedisServer::start(&[]).unwrap();
    let store = open(server.url());
    begin(&store).await;
    store.commit(logged("t", 1, 1)).await.unwrap();
    command(&server, &["CONFIG", "SET", "maxmemory", "1"]).await;
    let full = store
        .commit(Commit { task: Some(task("t", "one", TaskPhase::Completed, 9)), ..logged("t", 2, 1) })
        .await;
    let full = full.unwrap_err();
    assert!(full.is_transient() && full.to_string().contains("raise its maxmemory"), "{full}");
    let reason = trouble(&store).await;
    assert!(reason.contains("OOM command not allowed"), "{reason}");
    // Nothing of the refused commit was written.
    assert_eq!(store.task("t").await.unwrap().unwrap().phase, TaskPhase::Working);
    assert_eq!(store.tasks(&TaskFilter::default()).await.unwrap().len(), 1);
    assert_eq!(store.events("t", 0, 10).await.unwrap().len(), 1);
    command(&server, &["CONFIG", "SET", "maxmemory", "0"]).await;
    store.commit(logged("t", 2, 1)).await.unwrap();
    command(&server, &["REPLICAOF", "127.0.0.1", "1"]).await;
    let reason = trouble(&store).await;
    assert!(reason.contains("name the primary in the URL"), "{reason}");
    command(&server, &["REPLICAOF", "NO", "ONE"]).await;
    store.healthy().await.unwrap();
}

#[tokio::test]
async fn credentials_are_checked_and_never_shown() {
    let server = RedisServer::start(&["--requirepass", "right"]).unwrap();
    let url = |password: &str| format!("redis://:{password}@{}", server.address());
    for (url, wanted) in
        [(url("s3cret"), "check the user and the password"), (server.url(), "check the user")]
    {
        let store = open(url);
        let reason = trouble(&store).await;
        assert!(reason.contains(wanted) && !reason.contains("s3cret"), "{reason}");
        assert!(!format!("{store:?}").contains("s3cret"));
    }
    begin(&open(url("right"))).await;
}

/// A user with the rights that the documentation lists, and no others.
#[tokio::test]
async fn a_user_limited_to_its_keys_is_enough() {
    let server = RedisServer::start(&[]).unwrap();
    let rules = "ACL SETUSER caipe on >pw ~{caipe}:* &{caipe}:* +@read +@write +@scripting +@transaction +publish +subscribe \
                 +unsubscribe +ping +time +info +config|get";
    command(&server, &rules.split_whitespace().collect::<Vec<_>>()).await;
    let url = format!("redis://caipe:pw@{}", server.address());
    let store = open(url.clone());
    store.healthy().await.unwrap();
    begin(&store).await;
    store.commit(logged("t", 1, 1)).await.unwrap();
    assert_eq!(store.restrictions().await, Vec::<String>::new());
    let foreign = RedisStore::open(&RedisOptions { database: "other".to_owned(), ..options(url) }).unwrap();
    assert!(trouble(&foreign).await.contains("documentation of stores"));
}

#[tokio::test]
async fn weak_settings_of_the_server_are_reported() {
    let server =
        RedisServer::start(&["--appendfsync", "everysec", "--maxmemory-policy", "allkeys-lru"]).unwrap();
    let found = open(server.url()).restrictions().await;
    assert!(
        found.len() == 2 && found[0].contains("everysec") && found[1].contains("allkeys-lru"),
        "{found:?}"
    );
}

/// A server that answers nothing is given up at a deadline.
#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let server = RedisServer::start(&[]).unwrap();
    let store = open(server.url());
    begin(&store).await;
    command(&server, &["CLIENT", "PAUSE", "6500", "WRITE"]).await;
    let slow = tokio::time::timeout(Duration::from_secs(6), store.healthy()).await.expect("a deadline");
    assert!(matches!(slow, Err(StoreError::Unavailable { .. })), "{slow:?}");
    // The server carries on.
    store.commit(logged("t", 1, 1)).await.unwrap();
    assert_eq!(store.events("t", 0, 10).await.unwrap().len(), 1);
}

/// What one process writes, the readers and the owner in another one learn at once, also after a lost subscription.
/// A network that drops packets leaves connections open that never carry anything again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_connections_are_replaced() {
    let server = RedisServer::start(&[]).unwrap();
    let link = Link::to(&server.address()).await.unwrap();
    let (store, other) = (open(format!("redis://{}", link.address())), open(server.url()));
    begin(&other).await;
    let mut follower = Follower::new(Arc::new(store.clone()), "t", 0);
    other.commit(logged("t", 1, 1)).await.unwrap();
    follower.next().await.unwrap().unwrap();
    link.swallow();
    let reason = trouble(&store).await;
    assert!(reason.contains(&link.address()), "{reason}");
    link.mend();
    timeout(Duration::from_secs(6), async { while store.healthy().await.is_err() {} }).await.unwrap();
    begin(&store).await;
    other.commit(logged("t", 2, 2)).await.unwrap();
    timeout(Duration::from_secs(15), follower.next()).await.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_follow_each_other() {
    let server = RedisServer::start(&[]).unwrap();
    let (one, other) = (open(server.url()), open(server.url()));
    begin(&one).await;
    let mut changes = other.watch("t", Topic::Controls).await.unwrap();
    let follower = Follower::new(Arc::new(other.clone()), "t", 0);
    let read = async |mut follower: Follower| {
        let mut numbers = Vec::new();
        while let Some(event) = follower.next().await.unwrap() {
            numbers.push(event.seq);
        }
        numbers
    };
    let reading = tokio::spawn(async move { read(follower).await });
    for seq in 1..=20 {
        one.commit(logged("t", seq, 1)).await.unwrap();
        if seq == 10 {
            command(&server, &["CLIENT", "KILL", "TYPE", "pubsub"]).await;
        }
    }
    one.send_control("t", ControlMessage { id: "stop".into(), body: "{}".into() }).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.expect("the owner is woken");
    assert_eq!(other.controls("t", 0).await.unwrap().len(), 1);
    one.commit(recorded(task("t", "one", TaskPhase::Completed, 1))).await.unwrap();
    let numbers =
        tokio::time::timeout(Duration::from_secs(10), reading).await.expect("the log ends").unwrap();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
}

/// The term of a dead owner ends by the clock of the server.
#[tokio::test]
async fn a_lease_ends_by_the_clock_of_the_server() {
    let server = RedisServer::start(&[]).unwrap();
    let (one, other) = (open(server.url()), open(server.url()));
    begin(&one).await;
    let short = |owner: &str| caipe_store::LeaseTerm { ttl: Duration::from_millis(300), ..term(owner) };
    let first = one.acquire("t", &short("a")).await.unwrap();
    let second = loop {
        match other.acquire("t", &short("b")).await {
            Err(StoreError::LeaseTaken { owner, .. }) => assert_eq!(owner, "a"),
            outcome => break outcome.unwrap(),
        }
    };
    assert!(second.token > first.token);
    assert!(matches!(one.renew("t", first.token, term("a").ttl).await, Err(StoreError::LeaseLost { .. })));
}

/// A certificate for this machine, with its key.
fn certificate(directory: &Path) -> [String; 2] {
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| directory.join(name).display().to_string());
    let options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=redis \
                   -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
    let options = options.split_whitespace().chain(["-out", &certificate, "-keyout", &key]);
    let made = Command::new("openssl").args(options).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    [certificate, key]
}

#[tokio::test]
async fn a_server_with_tls_is_verified() {
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = certificate(directory.path());
    let settings =
        ["--port", "0", "--tls-port", "PORT", "--tls-auth-clients", "no", "--tls-cert-file", &certificate];
    let settings = [&settings[..], &["--tls-key-file", &key, "--tls-ca-cert-file", &certificate]].concat();
    let server = RedisServer::start(&settings).unwrap();
    let with_tls = |certificate_authority| {
        let url = format!("rediss://{}", server.address());
        RedisStore::open(&RedisOptions { certificate_authority, ..options(url) }).unwrap()
    };
    let pem = std::fs::read_to_string(&certificate).unwrap();
    let trusted = with_tls(Some(pem));
    begin(&trusted).await;
    assert!(trusted.task("t").await.unwrap().is_some());
    let reason = trouble(&with_tls(None)).await;
    assert!(reason.contains("certificate"), "{reason}");
    // A client without TLS gets no response that it can read.
    trouble(&open(server.url())).await;
}

/// Text reaches a reader at another process before it is stored, and events that it missed come from the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_reaches_another_process_before_it_is_stored() {
    let server = RedisServer::start(&[]).unwrap();
    let (owner, reader) = (open(server.url()), open(server.url()));
    begin(&owner).await;
    let mut follower = Follower::new(Arc::new(reader), "t", 0);
    let mut read = tokio::spawn(async move {
        let first = follower.next().await.unwrap().unwrap();
        (follower, first)
    });
    let chunk = |seq: u64| EventChunk::of(seq, time_of(seq), &[event(&seq.to_string())]).unwrap().unwrap();
    // Until the owner knows of the reader.
    let mut published = 0;
    let (mut follower, first) = loop {
        if owner.has_live_readers("t") {
            owner.publish("t", chunk(1));
            published += 1;
        }
        match timeout(Duration::from_millis(20), &mut read).await {
            Ok(read) => break read.unwrap(),
            Err(_) => assert!(published < 500, "the text never came"),
        }
    };
    assert_eq!((first.seq, first.at), (1, time_of(1)));
    assert_eq!(owner.events("t", 0, 10).await.unwrap(), [], "it is not stored");
    // The third one waits for the second, which comes with the commit.
    owner.publish("t", chunk(3));
    owner.commit(logged("t", 1, 2)).await.unwrap();
    for seq in [2, 3] {
        let next =
            timeout(Duration::from_secs(20), follower.next()).await.expect("it comes").unwrap().unwrap();
        assert_eq!((next.seq, next.event), (seq, event(&seq.to_string())));
    }
    drop(follower);
}
