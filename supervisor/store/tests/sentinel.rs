//! The Redis store behind Sentinel and in a cluster, while another server becomes the one that has the keys.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod samples;

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use caipe_fixtures::redis::{RedisCluster, RedisServer};
use caipe_store::{Follower, RedisOptions, RedisStore, Store, StoreError, TaskPhase};
use samples::{logged, recorded, task};
use tempfile::TempDir;
use tokio::time::{interval, timeout};

/// Ends the server when its standard input closes, also when the test is killed.
const GUARDED: &str =
    r#"exec 2>&1; redis-server "$1" --sentinel <&- & server=$!; read -r _; kill -9 $server; wait $server"#;

/// How long a failover may take.
const FAILOVER: Duration = Duration::from_secs(30);

struct Sentinel {
    child: Child,
    port: u16,
    _directory: TempDir,
}

impl Sentinel {
    /// A Sentinel that decides alone, soon.
    fn start(primary: &RedisServer) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let file = directory.path().join("sentinel.conf");
        let lines = [
            format!("port {port}\nbind 127.0.0.1\ndir {}", directory.path().display()),
            format!("sentinel monitor main 127.0.0.1 {} 1", primary.port()),
            "sentinel down-after-milliseconds main 300\nsentinel failover-timeout main 3000\n".to_owned(),
        ];
        std::fs::write(&file, lines.join("\n")).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", GUARDED, "sh"]).arg(&file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("+monitor")), "no Sentinel");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port, _directory: directory }
    }

    /// What it says of the replicas.
    async fn replicas(&self) -> String {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port)).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut command = redis::cmd("SENTINEL");
        let found: redis::Value =
            command.arg(&["replicas", "main"]).query_async(&mut connection).await.unwrap();
        format!("{found:?}")
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Repeats an attempt until it succeeds.
async fn eventually<T>(attempt: impl AsyncFn() -> Result<T, StoreError>) -> T {
    let mut ticks = interval(Duration::from_millis(50));
    let repeated = async {
        loop {
            ticks.tick().await;
            match attempt().await {
                Ok(found) => return found,
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
        }
    };
    timeout(FAILOVER, repeated).await.unwrap()
}

fn open(sentinel: &Sentinel) -> RedisStore {
    // The first Sentinel is away.
    let url = format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/main", sentinel.port);
    let options = RedisOptions { url, database: "caipe".to_owned(), ..RedisOptions::default() };
    RedisStore::open(&options).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_is_followed() {
    let mut primary = RedisServer::start(&[]).unwrap();
    let port = primary.port().to_string();
    let replica = RedisServer::start(&["--replicaof", "127.0.0.1", &port]).unwrap();
    let sentinel = Sentinel::start(&primary);
    let (store, other) = (open(&sentinel), open(&sentinel));
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
    store.commit(logged("t", 1, 2)).await.unwrap();
    let mut follower = Follower::new(Arc::new(other), "t", 0);
    assert_eq!(follower.next().await.unwrap().unwrap().seq, 1);
    let missing = |what: &str| StoreError::Unavailable { backend: "redis", reason: what.to_owned() };
    let is_known = async || {
        let is_known = sentinel.replicas().await.contains(&replica.port().to_string());
        if is_known { Ok(()) } else { Err(missing("the Sentinel does not know the replica")) }
    };
    eventually(is_known).await;
    let is_copied = async || {
        let client = redis::Client::open(primary.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut command = redis::cmd("WAIT");
        let copies: u64 = command.arg(&[1, 100]).query_async(&mut connection).await.unwrap();
        if copies > 0 { Ok(()) } else { Err(missing("the replica has not everything")) }
    };
    eventually(is_copied).await;

    primary.kill().unwrap();
    eventually(async || store.commit(logged("t", 3, 2)).await).await;
    assert_eq!(store.events("t", 0, 9).await.unwrap().len(), 4);
    for seq in 2..=4 {
        let next = timeout(FAILOVER, async {
            loop {
                if let Ok(event) = follower.next().await {
                    return event;
                }
            }
        });
        assert_eq!(next.await.unwrap().unwrap().seq, seq);
    }
    // The old primary comes back as a replica.
    primary.restart().unwrap();
    eventually(async || store.commit(logged("t", 5, 1)).await).await;
    eventually(async || store.healthy().await).await;
    assert!(store.restrictions().await.join(" ").contains("failover"));
}

#[tokio::test]
async fn sentinels_that_do_not_answer_are_named() {
    let url = "redis+sentinel://:s3cret@127.0.0.1:1,127.0.0.1:2/main".to_owned();
    let store = RedisStore::open(&RedisOptions { url, ..RedisOptions::default() }).unwrap();
    let error = store.healthy().await.unwrap_err().to_string();
    for wanted in ["127.0.0.1:1", "127.0.0.1:2", "\"main\""] {
        assert!(error.contains(wanted) && !error.contains("s3cret"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_move_in_a_cluster_are_followed() {
    let cluster = RedisCluster::start().unwrap();
    let options =
        RedisOptions { url: cluster.url(), database: "caipe".to_owned(), ..RedisOptions::default() };
    let (store, other) = (RedisStore::open(&options).unwrap(), RedisStore::open(&options).unwrap());
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
    store.commit(logged("t", 1, 2)).await.unwrap();
    let mut follower = Follower::new(Arc::new(other), "t", 1);
    assert_eq!(follower.next().await.unwrap().unwrap().seq, 2);
    let (from, to) = cluster.nodes_of("{caipe}:format").unwrap();
    let moved = cluster.move_slots(from, to);
    moved.unwrap();
    eventually(async || store.commit(logged("t", 3, 1)).await).await;
    assert_eq!(store.events("t", 0, 9).await.unwrap().len(), 3);
    let next = timeout(FAILOVER, async {
        loop {
            if let Ok(event) = follower.next().await {
                return event;
            }
        }
    });
    assert_eq!(next.await.unwrap().unwrap().seq, 3);
    let (now, _) = cluster.nodes_of("{caipe}:format").unwrap();
    assert_eq!(now.port(), to.port());
}
