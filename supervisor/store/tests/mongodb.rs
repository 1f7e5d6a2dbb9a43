//! The MongoDB store with a server in trouble, and with several processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod samples;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use caipe_fixtures::mongodb::MongodbServer;
use caipe_store::{
    Commit, ControlMessage, EventChunk, Follower, LeaseTerm, MongodbOptions, MongodbStore, Store, StoreError,
    TaskFilter, TaskPhase, Topic, Transfer as _,
};
use mongodb::bson::{Document, doc};
use samples::{event, logged, recorded, task, term, time_of};
use tokio::time::timeout;

fn with(uri: String) -> MongodbStore {
    let options = MongodbOptions { uri, database: "team_caipe".to_owned(), ..MongodbOptions::default() };
    MongodbStore::open(&options).unwrap()
}

fn open(server: &MongodbServer) -> MongodbStore {
    with(server.uri())
}

/// Makes the next commands fail.
async fn fail(server: &MongodbServer, times: i32, commands: &[&str], how: Document) {
    let mut data = doc! { "failCommands": commands };
    data.extend(how);
    let point = doc! { "configureFailPoint": "failCommand", "mode": { "times": times }, "data": data };
    let client = mongodb::Client::with_uri_str(server.uri()).await.unwrap();
    client.database("admin").run_command(point).await.unwrap();
}

/// The error of a write, which is worth another attempt.
async fn trouble(store: &MongodbStore) -> String {
    let error = store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap_err();
    assert!(error.is_transient() && store.healthy().await.is_err(), "{error}");
    error.to_string()
}

async fn begin(store: &dyn Store) {
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_away_is_used_once_it_is_back() {
    let mut server = MongodbServer::start(&[]).unwrap();
    let store = open(&server);
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

/// Conflicts with other transactions, lost connections and lost responses: each commit is written, and once.
#[tokio::test]
async fn troubled_transactions_are_repeated_and_count_once() {
    let server = MongodbServer::start(&[]).unwrap();
    let store = open(&server);
    store.healthy().await.unwrap();
    let conflict = || doc! { "errorCode": 112, "errorLabels": ["TransientTransactionError"] };
    let unknown = || doc! { "errorCode": 50, "errorLabels": ["UnknownTransactionCommitResult"] };
    let cut = || doc! { "closeConnection": true };
    let answered = |mut how: Document| {
        how.insert("afterwards", true);
        how
    };
    let troubles = [
        (&["commitTransaction"][..], conflict()),
        (&["find"], conflict()),
        (&["update", "insert"], conflict()),
        (&["commitTransaction"], unknown()),
        (&["commitTransaction"], cut()),
        (&["commitTransaction"], answered(cut())),
        (&["update"], answered(cut())),
        (&["find"], cut()),
    ];
    for (number, (commands, how)) in troubles.into_iter().enumerate() {
        let id = number.to_string();
        let created = Commit { create: Some(term("a")), ..recorded(task(&id, "one", TaskPhase::Working, 0)) };
        fail(&server, 2, commands, how.clone()).await;
        store.commit(created).await.unwrap_or_else(|error| panic!("{commands:?} {how}: {error}"));
        fail(&server, 2, commands, how.clone()).await;
        store.commit(logged(&id, 1, 2)).await.unwrap_or_else(|error| panic!("{commands:?} {how}: {error}"));
        assert_eq!(store.events(&id, 0, 10).await.unwrap().len(), 2, "{commands:?} {how}");
    }
    assert_eq!(store.tasks(&TaskFilter::default()).await.unwrap().len(), 8);
}

#[tokio::test]
async fn a_server_that_refuses_says_what_to_do() {
    let server = MongodbServer::start(&[]).unwrap();
    let store = open(&server);
    begin(&store).await;
    for (code, wanted) in [
        (13, "role readWrite"),
        (14031, "disk space"),
        (64, "too few members"),
        (8000, "check the user and the password"),
    ] {
        fail(&server, 2, &["update"], doc! { "errorCode": code }).await;
        let reason = trouble(&store).await;
        assert!(reason.contains(wanted) && reason.contains(&server.address()), "{reason}");
    }
    store.commit(logged("t", 1, 1)).await.unwrap();
    assert_eq!(store.events("t", 0, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_standalone_server_is_refused() {
    let server = MongodbServer::start(&["--standalone"]).unwrap();
    let reason = trouble(&open(&server)).await;
    assert!(reason.contains("standalone") && reason.contains("rs.initiate()"), "{reason}");
}

#[tokio::test]
async fn credentials_are_never_shown() {
    let server = MongodbServer::start(&[]).unwrap();
    let store = with(format!("mongodb://user:s3cret@{}/?serverSelectionTimeoutMS=1000", server.address()));
    let reason = trouble(&store).await;
    assert!(!format!("{reason} {store:?}").contains("s3cret"), "{reason}");
}

#[tokio::test]
async fn weak_settings_of_the_server_are_reported() {
    let server = MongodbServer::start(&[]).unwrap();
    let found = open(&server).restrictions().await;
    assert!(found.len() == 1 && found[0].contains("one member"), "{found:?}");
}

/// A certificate for this machine, and the same with its key.
fn certificate(directory: &Path) -> [PathBuf; 2] {
    let [certificate, key, both] = ["cert.pem", "key.pem", "both.pem"].map(|name| directory.join(name));
    let options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=mongodb \
                   -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE -out";
    let mut openssl = Command::new("openssl");
    let made =
        openssl.args(options.split_whitespace()).arg(&certificate).arg("-keyout").arg(&key).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let texts = [&certificate, &key].map(|file| std::fs::read_to_string(file).unwrap());
    std::fs::write(&both, texts.concat()).unwrap();
    [certificate, both]
}

#[tokio::test]
async fn a_server_with_tls_is_verified() {
    let directory = tempfile::tempdir().unwrap();
    let [certificate, both] = certificate(directory.path());
    let server = MongodbServer::start(&["--tls", &both.display().to_string()]).unwrap();
    let with_tls = |certificate_authority| {
        let options = MongodbOptions {
            uri: format!("{}/?tls=true", server.uri()),
            database: "team_caipe".to_owned(),
            certificate_authority,
        };
        MongodbStore::open(&options).unwrap()
    };
    let trusted = with_tls(Some(certificate));
    begin(&trusted).await;
    assert!(trusted.task("t").await.unwrap().is_some());
    let reason = trouble(&with_tls(None)).await;
    assert!(reason.contains("certificate"), "{reason}");
    // A client without TLS gets no response that it can read.
    trouble(&open(&server)).await;
}

/// A server that answers nothing is given up at a deadline.
#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let server = MongodbServer::start(&[]).unwrap();
    let store = open(&server);
    begin(&store).await;
    fail(&server, 1, &["update"], doc! { "blockTimeMS": 6000 }).await;
    let slow = timeout(Duration::from_millis(5800), store.healthy()).await.expect("a deadline");
    assert!(matches!(slow, Err(StoreError::Unavailable { .. })), "{slow:?}");
    // The server carries on.
    store.commit(logged("t", 1, 1)).await.unwrap();
    assert_eq!(store.events("t", 0, 10).await.unwrap().len(), 1);
}

/// A document of MongoDB has a bound below that of other stores.
#[tokio::test]
async fn a_value_that_no_document_holds_is_refused_by_name() {
    let server = MongodbServer::start(&[]).unwrap();
    let store = open(&server);
    begin(&store).await;
    let large = samples::saved("one", &"x".repeat(15 << 20));
    let refused = store.commit(large).await.unwrap_err();
    assert!(matches!(&refused, StoreError::TooLarge { .. }), "{refused}");
    assert!(refused.to_string().contains("\"one\"") && !refused.is_transient(), "{refused}");
    let events = [event(&"x".repeat(15 << 20))];
    let chunk = EventChunk::of(1, time_of(1), &events).unwrap();
    let refused = store.commit(Commit { events: chunk.into_iter().collect(), ..logged("t", 1, 1) }).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })), "{refused:?}");
}

/// What one process writes, the readers and the owner in another one learn at once, also after a restart of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_follow_each_other() {
    let mut server = MongodbServer::start(&[]).unwrap();
    let (one, other) = (open(&server), open(&server));
    begin(&one).await;
    let mut changes = other.watch("t", Topic::Controls).await.unwrap();
    let mut follower = Follower::new(Arc::new(other.clone()), "t", 0);
    let reading = tokio::spawn(async move {
        let mut read = Vec::new();
        while let Some(event) = follower.next().await.unwrap() {
            read.push((event.seq, Instant::now()));
        }
        read
    });
    let mut written = Vec::new();
    for seq in 1..=20 {
        if seq == 10 {
            server.kill().unwrap();
            server.restart().unwrap();
        }
        one.commit(logged("t", seq, 1)).await.unwrap();
        written.push(Instant::now());
    }
    one.send_control("t", ControlMessage { id: "stop".into(), body: "{}".into() }).await.unwrap();
    timeout(Duration::from_secs(10), changes.changed()).await.expect("the owner is woken");
    assert_eq!(other.controls("t", 0).await.unwrap().len(), 1);
    one.commit(recorded(task("t", "one", TaskPhase::Completed, 1))).await.unwrap();
    let read = timeout(Duration::from_secs(20), reading).await.expect("the log ends").unwrap();
    assert_eq!(read.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
    let mut lags: Vec<_> = read.iter().zip(&written).map(|((_, read), written)| *read - *written).collect();
    lags.sort_unstable();
    println!("lag of stored events at another process: median {:?}, longest {:?}", lags[10], lags[19]);
}

/// The term of a dead owner ends by the clock of the server.
#[tokio::test]
async fn a_lease_ends_by_the_clock_of_the_server() {
    let server = MongodbServer::start(&[]).unwrap();
    let (one, other) = (open(&server), open(&server));
    begin(&one).await;
    let short = |owner: &str| LeaseTerm { ttl: Duration::from_millis(300), ..term(owner) };
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

/// Text reaches a reader at another process before it is stored, and events that it missed come from the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_reaches_another_process_before_it_is_stored() {
    let server = MongodbServer::start(&[]).unwrap();
    let (owner, reader) = (open(&server), open(&server));
    begin(&owner).await;
    let mut follower = Follower::new(Arc::new(reader), "t", 0);
    let mut read = tokio::spawn(async move {
        let first = follower.next().await.unwrap().unwrap();
        (follower, first, Instant::now())
    });
    let chunk = |seq: u64| EventChunk::of(seq, time_of(seq), &[event(&seq.to_string())]).unwrap().unwrap();
    // Until the owner knows of the reader.
    let (mut published, mut sent) = (0, Instant::now());
    let (mut follower, first, came) = loop {
        if owner.has_live_readers("t") && published == 0 {
            (published, sent) = (1, Instant::now());
            owner.publish("t", chunk(1));
        }
        match timeout(Duration::from_millis(20), &mut read).await {
            Ok(read) => break read.unwrap(),
            Err(_) => assert!(sent.elapsed() < Duration::from_secs(20), "the text never came"),
        }
    };
    println!("lag of text at another process: {:?}", came - sent);
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

/// As long as a process serves a database, and no longer than until it closes the store.
#[tokio::test]
async fn a_database_that_is_served_is_in_use() {
    let server = MongodbServer::start(&[]).unwrap();
    let options =
        MongodbOptions { uri: server.uri(), database: "team_caipe".to_owned(), ..MongodbOptions::default() };
    let copied = MongodbStore::open_alone(&options).unwrap();
    assert!(!copied.is_in_use().await.unwrap(), "a copy does not serve");
    let store = open(&server);
    let appears = async { while !copied.is_in_use().await.unwrap() {} };
    timeout(Duration::from_secs(20), appears).await.expect("it says that it serves");
    store.close().await.unwrap();
    assert!(!copied.is_in_use().await.unwrap());
}
