//! The MongoDB store with a server in trouble, and with several processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod samples;

use caipe_fixtures::mongodb::MongodbServer;
use caipe_store::{MongodbOptions, MongodbStore, Store, TaskPhase};
use samples::{logged, recorded, task};

fn open(server: &MongodbServer) -> MongodbStore {
    let options =
        MongodbOptions { uri: server.uri(), database: "team_caipe".to_owned(), ..MongodbOptions::default() };
    MongodbStore::open(&options).unwrap()
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
