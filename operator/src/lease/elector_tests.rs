//! The keeper against an API server of one lease, in paused time.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// What the API server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    /// It answers with that status and does nothing.
    Refuses(u16),
    /// It does what was asked and never answers.
    Mute,
}

struct Server {
    mood: Mutex<Mood>,
    lease: Mutex<Option<Value>>,
    version: AtomicU32,
}

impl Server {
    fn new() -> Arc<Self> {
        Arc::new(Self { mood: Mutex::new(Mood::Well), lease: Mutex::default(), version: AtomicU32::new(0) })
    }

    fn client(self: &Arc<Self>) -> Client {
        let server = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = Arc::clone(&server);
            async move { Ok::<_, std::convert::Infallible>(server.answer(request).await) }
        });
        Client::new(service, "caipe-system")
    }

    fn mood(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn holder(&self) -> Option<String> {
        let lease = self.lease.lock().unwrap();
        lease.as_ref()?["spec"]["holderIdentity"].as_str().map(ToOwned::to_owned)
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let mood = *self.mood.lock().unwrap();
        if let Mood::Refuses(code) = mood {
            return status(code);
        }
        let method = request.method().clone();
        assert!(
            request.uri().path().starts_with("/apis/coordination.k8s.io/v1/namespaces/caipe-system/leases")
        );
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let answer = self.act(&method, serde_json::from_slice(&body).unwrap_or_default());
        if mood == Mood::Mute {
            std::future::pending::<()>().await;
        }
        answer
    }

    fn act(&self, method: &Method, mut wanted: Value) -> Response<Body> {
        let mut lease = self.lease.lock().unwrap();
        match (method, lease.as_ref()) {
            (&Method::GET, Some(lease)) => return json_response(lease),
            (&Method::GET | &Method::PUT, None) => return status(404),
            (&Method::POST, Some(_)) => return status(409),
            (&Method::PUT, Some(lease))
                if lease["metadata"]["resourceVersion"] != wanted["metadata"]["resourceVersion"] =>
            {
                return status(409);
            }
            _ => {}
        }
        let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
        wanted["metadata"]["resourceVersion"] = json!(version.to_string());
        let answer = json_response(&wanted);
        *lease = Some(wanted);
        answer
    }
}

fn json_response(value: &Value) -> Response<Body> {
    Response::new(Body::from(serde_json::to_vec(value).unwrap()))
}

fn status(code: u16) -> Response<Body> {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        _ => "Unknown",
    };
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": "no"});
    let mut response = json_response(&status);
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

struct Running {
    leadership: Leadership,
    stop: CancellationToken,
    task: JoinHandle<()>,
    metrics: Arc<Metrics>,
}

fn start(server: &Arc<Server>, identity: &str) -> Running {
    let options = LeaseOptions::new("caipe-system", "caipe-operator", identity.to_owned());
    let (stop, metrics) = (CancellationToken::new(), Arc::new(Metrics::new()));
    let (leadership, task) = elect(server.client(), options, Arc::clone(&metrics), stop.clone());
    Running { leadership, stop, task, metrics }
}

fn is_leader(metrics: &Metrics) -> bool {
    metrics.encode().unwrap().lines().any(|line| line == "caipe_operator_is_leader 1")
}

async fn within(limit: u64, event: impl Future<Output = ()>) -> Duration {
    let begun = Instant::now();
    timeout(Duration::from_secs(limit), event).await.expect("it comes in time");
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_hands_over_when_it_ends() {
    let server = Server::new();
    let a = start(&server, "a");
    within(1, a.leadership.wait_until_leading()).await;
    assert_eq!(server.holder().as_deref(), Some("a"));
    let b = start(&server, "b");
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(a.leadership.holds() && !b.leadership.holds(), "it is renewed");
    assert!(b.leadership.is_known(), "it is known who leads");
    assert!(is_leader(&a.metrics) && !is_leader(&b.metrics));
    a.stop.cancel();
    within(1, async { a.task.await.unwrap() }).await;
    assert!(!a.leadership.holds() && !is_leader(&a.metrics));
    assert_eq!(server.holder(), None, "released");
    within(3, b.leadership.wait_until_leading()).await;
    b.stop.cancel();
    b.task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_killed_is_followed_after_its_time() {
    let server = Server::new();
    let (a, b) = (start(&server, "a"), start(&server, "b"));
    within(1, async {
        tokio::select! { () = a.leadership.wait_until_leading() => {}, () = b.leadership.wait_until_leading() => {} }
    })
    .await;
    let (leader, other) = if a.leadership.holds() { (a, b) } else { (b, a) };
    tokio::time::sleep(Duration::from_mins(1)).await;
    leader.task.abort();
    let lost = within(11, leader.leadership.wait_until_lost()).await;
    assert!(lost >= Duration::from_secs(4), "what was renewed lasts: {lost:?}");
    assert!(!leader.leadership.is_known(), "nobody keeps it informed");
    assert!(!other.leadership.holds(), "nobody leads before the other one has stopped");
    within(14, other.leadership.wait_until_leading()).await;
    other.stop.cancel();
    other.task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn no_fault_of_the_api_server_ends_it_and_leadership_ends_in_time() {
    for mood in [Mood::Refuses(500), Mood::Refuses(403), Mood::Refuses(429), Mood::Refuses(404), Mood::Mute] {
        let server = Server::new();
        let a = start(&server, "a");
        within(1, a.leadership.wait_until_leading()).await;
        server.mood(mood);
        let lost = within(11, a.leadership.wait_until_lost()).await;
        assert!(lost <= Duration::from_secs(10), "{mood:?}: {lost:?}");
        tokio::time::sleep(Duration::from_mins(5)).await;
        assert!(!a.leadership.holds() && !is_leader(&a.metrics), "{mood:?}");
        server.mood(Mood::Well);
        within(20, a.leadership.wait_until_leading()).await;
        a.stop.cancel();
        within(6, async { a.task.await.unwrap() }).await;
        assert_eq!(server.holder(), None, "{mood:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_mute_api_server_does_not_keep_the_program_from_ending() {
    let server = Server::new();
    let a = start(&server, "a");
    within(1, a.leadership.wait_until_leading()).await;
    server.mood(Mood::Mute);
    a.stop.cancel();
    within(11, async { a.task.await.unwrap() }).await;
    assert!(!a.leadership.holds());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_known_before_the_api_server_answers() {
    let server = Server::new();
    server.mood(Mood::Refuses(503));
    let a = start(&server, "a");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(!a.leadership.is_known() && !a.leadership.holds());
    server.mood(Mood::Well);
    within(5, a.leadership.wait_until_leading()).await;
    assert!(a.leadership.is_known());
    a.stop.cancel();
    a.task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_without_a_lease_leads_always() {
    let leadership = Leadership::always();
    assert!(leadership.holds() && leadership.is_known());
    leadership.wait_until_leading().await;
    assert!(timeout(Duration::from_hours(1), leadership.wait_until_lost()).await.is_err());
}

/// What is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Each line that tells of waiting.
    fn waits(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains("waits for the lease")).map(str::to_owned).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_says_for_whom_once() {
    let (log, server) = (Log::default(), Server::new());
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let a = start(&server, "a");
    within(1, a.leadership.wait_until_leading()).await;
    let b = start(&server, "b");
    tokio::time::sleep(Duration::from_mins(5)).await;
    let waits = log.waits();
    assert_eq!(waits.len(), 1, "the leader waits for nobody, the other one says it once: {waits:?}");
    for word in ["lease=caipe-system/caipe-operator", "holder=\"a\""] {
        assert!(waits[0].contains(word), "{waits:?}");
    }
    a.task.abort();
    within(20, b.leadership.wait_until_leading()).await;
    let c = start(&server, "c");
    tokio::time::sleep(Duration::from_mins(5)).await;
    b.stop.cancel();
    b.task.await.unwrap();
    within(5, c.leadership.wait_until_leading()).await;
    let waits = log.waits();
    assert!(waits.len() == 2 && waits[1].contains("holder=\"b\""), "{waits:?}");
    // Another one has taken it: who held it before waits for that one.
    let taken = json!({"metadata": {"name": "caipe-operator", "resourceVersion": "0"},
        "spec": {"holderIdentity": "d", "leaseDurationSeconds": 15}});
    *server.lease.lock().unwrap() = Some(taken);
    within(11, c.leadership.wait_until_lost()).await;
    let waits = log.waits();
    assert!(waits.len() == 3 && waits[2].contains("holder=\"d\""), "{waits:?}");
    c.stop.cancel();
    c.task.await.unwrap();
}
