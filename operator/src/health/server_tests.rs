use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::super::state::Gate;
use super::*;

struct Running {
    health: Health,
    address: SocketAddr,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

fn start() -> Running {
    let listener = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let (health, stop, address) =
        (Health::default(), CancellationToken::new(), listener.local_addr().unwrap());
    let task = tokio::spawn(serve(listener, health.clone(), Arc::new(Metrics::new()), stop.clone()));
    Running { health, address, stop, task }
}

impl Running {
    async fn get(&self, path: &str) -> (u16, String, String) {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let response = http.get(format!("http://{}{path}", self.address)).send().await.unwrap();
        let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        (response.status().as_u16(), kind.unwrap_or_default(), response.text().await.unwrap())
    }

    async fn end(self) {
        self.stop.cancel();
        timeout(Duration::from_secs(5), self.task).await.expect("it ends").unwrap();
    }
}

#[tokio::test]
async fn it_is_ready_once_everything_is_so() {
    let running = start();
    let (code, _, text) = running.get("/readyz").await;
    assert_eq!((code, text.as_str()), (503, "missing: definition, caches, leadership\n"));
    for gate in [Gate::Definition, Gate::Caches, Gate::Leadership] {
        running.health.set(gate, true);
    }
    assert_eq!(running.get("/readyz").await.0, 200);
    running.health.set(Gate::Definition, false);
    assert_eq!(running.get("/readyz").await.2, "missing: definition\n");
    assert_eq!(running.get("/healthz").await.0, 200, "it lives all the same");
    running.end().await;
}

#[tokio::test]
async fn it_does_not_live_when_a_loop_stands_still() {
    let running = start();
    let (well, still) = (
        running.health.heartbeat("reconciler", Duration::from_mins(1)),
        running.health.heartbeat("prober", Duration::ZERO),
    );
    let (code, _, text) = running.get("/healthz").await;
    assert_eq!((code, text.as_str()), (503, "silent: prober\n"));
    drop(well);
    assert_eq!(running.get("/healthz").await.2, "silent: reconciler, prober\n");
    drop(still);
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_lasts_as_long_as_it_announced() {
    let health = Health::default();
    let heartbeat = health.heartbeat("reconciler", Duration::from_secs(30));
    for (seconds, is_silent) in [(30, false), (1, true)] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        assert_eq!(!health.silent().is_empty(), is_silent);
    }
    heartbeat.now();
    assert!(health.silent().is_empty());
}

#[tokio::test]
async fn it_does_not_live_when_work_has_ended() {
    let health = Health::default();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let work = tokio::spawn(health.monitor("prober", async { drop(ended.await) }));
    let fault = health.monitor("publisher", async { panic!("a fault in it") });
    let never = health.monitor("held", std::future::pending::<()>());
    assert!(health.silent().is_empty());
    assert!(tokio::spawn(fault).await.is_err());
    assert_eq!(health.silent(), ["publisher"]);
    drop((end, never));
    work.await.unwrap();
    assert_eq!(health.silent(), ["prober", "publisher", "held"]);
}

#[tokio::test]
async fn prometheus_is_served() {
    let running = start();
    let (code, kind, text) = running.get("/metrics").await;
    assert_eq!((code, kind.as_str()), (200, CONTENT_TYPE));
    assert!(text.contains("caipe_operator_build_info") && text.ends_with("# EOF\n"), "{text}");
    assert_eq!(running.get("/").await.0, 404);
    running.end().await;
}

#[tokio::test]
async fn idle_connections_do_not_keep_it_from_ending() {
    let running = start();
    let mut idle = TcpStream::connect(running.address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut bytes = [0; 512];
    assert!(idle.read(&mut bytes).await.unwrap() > 0);
    let _half = TcpStream::connect(running.address).await.unwrap();
    running.end().await;
}

#[tokio::test]
async fn too_many_connections_wait_and_a_head_without_end_is_refused() {
    let running = start();
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
        idle.push(stream);
    }
    let begun = Instant::now();
    let mut first = idle.remove(0);
    let head = format!("X: {}\r\n\r\n", "x".repeat(HEAD_BYTES * 2));
    let _ = first.write_all(head.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_secs(5), first.read_to_end(&mut answer)).await.expect("it is refused");
    assert!(answer.starts_with(b"HTTP/1.1 431") || answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    drop(first);
    assert_eq!(running.get("/healthz").await.0, 200, "its place is free again");
    assert!(begun.elapsed() < HEAD_TIME);
    running.end().await;
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let running = start();
    let error = bind(running.address).unwrap_err().to_string();
    assert!(error.contains(&running.address.to_string()) && error.contains("--listen"), "{error}");
    running.end().await;
}
