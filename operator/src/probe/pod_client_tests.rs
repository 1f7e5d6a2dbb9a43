//! Real connections to pods that mean well, and to pods that do not.

use std::net::Ipv4Addr;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::super::bounds::{AGENTS, TEXT};
use super::*;
use crate::metrics::labels::ProbeOutcome;

const TOKEN: &str = "status-token-of-the-operator";

/// What a pod sends, whatever it is asked.
enum Answer {
    /// That, and the end.
    Bytes(Vec<u8>),
    /// That, and then these bytes for ever.
    Flood(Vec<u8>, &'static [u8]),
    /// That, and then a byte now and then.
    Drip(Vec<u8>),
    /// Nothing.
    Mute,
}

/// A pod on loopback, and the requests that it got.
struct Pod {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Pod {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pod(answer: Answer) -> Pod {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (answer, heard) = (Arc::new(answer), Arc::clone(&requests));
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, Arc::clone(&answer), Arc::clone(&heard)));
        }
    });
    Pod { port, requests, task }
}

async fn converse(mut stream: TcpStream, answer: Arc<Answer>, log: Arc<Mutex<Vec<String>>>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut bytes = [0; 1024];
        let Ok(length @ 1..) = stream.read(&mut bytes).await else { return };
        request.extend_from_slice(&bytes[..length]);
    }
    log.lock().unwrap().push(String::from_utf8(request).unwrap());
    match &*answer {
        Answer::Bytes(bytes) => drop(stream.write_all(bytes).await),
        Answer::Flood(head, bytes) => {
            let _ = stream.write_all(head).await;
            while stream.write_all(bytes).await.is_ok() {}
        }
        Answer::Drip(head) => {
            let _ = stream.write_all(head).await;
            while stream.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Answer::Mute => std::future::pending::<()>().await,
    }
}

fn answer(status: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    Answer::Bytes(
        format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
            .into_bytes(),
    )
}

fn flood() -> Answer {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n".to_vec();
    Answer::Flood(head, &[b' '; 16 << 10])
}

fn probe_pod(pod: &Pod) -> HttpPodClient {
    let limits = Limits { deadline: Duration::from_secs(20), ..Limits::default() };
    HttpPodClient::new(limits).unwrap().at_port(pod.port)
}

fn request() -> Request {
    Request { ip: Ipv4Addr::LOCALHOST.into(), token: Some(TOKEN.into()) }
}

fn report() -> serde_json::Value {
    serde_json::json!({
        "epoch": 4, "runningEpoch": 3, "hash": "abc",
        "agents": [{"name": "argocd", "placement": "Remote", "phase": "Ready", "epoch": 3, "activeTasks": 0,
            "tools": ["list", "sync"]}]
    })
}

fn card(version: &str) -> String {
    serde_json::json!({
        "name": "argocd", "description": "Argo CD", "version": "1", "capabilities": {}, "skills": [],
        "defaultInputModes": ["text"], "defaultOutputModes": ["text"],
        "supportedInterfaces":
            [{"url": "http://elsewhere.example.com/", "protocolBinding": "JSONRPC", "protocolVersion": version}]
    })
    .to_string()
}

#[tokio::test]
async fn a_status_is_asked_for_with_the_token() {
    let pod = pod(answer("200 OK", "", &report().to_string())).await;
    let seen = probe_pod(&pod).status(&request()).await.unwrap();
    assert_eq!((seen.epoch, seen.running_epoch, seen.agents[0].name.as_str()), (4, 3, "argocd"));
    assert!(seen.agents[0].tools.is_empty(), "nobody needs them here");
    let asked = pod.requests.lock().unwrap()[0].to_ascii_lowercase();
    assert!(asked.starts_with("get /internal/status http/1.1\r\n"), "{asked}");
    assert!(asked.contains(&format!("authorization: bearer {TOKEN}\r\n")), "{asked}");
    assert!(!asked.contains("connection: close\r\n") && !asked.contains("cookie"), "{asked}");
}

/// A pod that answers several requests on a connection; returns the number of connections.
async fn answering_pod(requests_each: usize) -> (u16, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (port, accepted) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(0)));
    let counted = Arc::clone(&accepted);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            *counted.lock().unwrap() += 1;
            for _ in 0..requests_each {
                let Answer::Bytes(bytes) = answer("200 OK", "", &report().to_string()) else { return };
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let Ok(1..) = stream.read_buf(&mut request).await else { break };
                }
                let _ = stream.write_all(&bytes).await;
            }
        }
    });
    (port, accepted)
}

#[tokio::test]
async fn a_connection_is_used_again_and_replaced_when_the_pod_closes_it() {
    for (requests_each, expected) in [(6, 1), (2, 3), (1, 6)] {
        let (port, accepted) = answering_pod(requests_each).await;
        let probe = HttpPodClient::new(Limits::default()).unwrap().at_port(port);
        for number in 0..6 {
            let seen = probe.status(&request()).await;
            assert!(seen.is_ok(), "{requests_each}, {number}: {seen:?}");
        }
        assert_eq!(*accepted.lock().unwrap(), expected, "{requests_each}");
    }
}

#[tokio::test]
async fn a_card_is_requested_without_the_token_and_cached_by_its_etag() {
    let first = pod(answer("200 OK", "ETag: \"v1\"\r\nSet-Cookie: a=b\r\n", &card("1.0"))).await;
    let probe = probe_pod(&first);
    for _ in 0..2 {
        let seen = probe.card(&request()).await.unwrap();
        assert_eq!((seen.name.as_str(), seen.protocol_version.as_str()), ("argocd", "1.0"));
    }
    let asked = first.requests.lock().unwrap().concat().to_ascii_lowercase();
    assert!(asked.contains("get /.well-known/agent-card.json"), "{asked}");
    assert!(asked.contains("if-none-match: \"v1\""), "{asked}");
    assert!(!asked.contains(TOKEN) && !asked.contains("cookie"), "{asked}");
}

#[tokio::test]
async fn a_card_that_has_not_changed_is_not_sent_again() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let body = answer("200 OK", "ETag: \"v1\"\r\n", &card("0.3"));
        for answer in [body, Answer::Bytes(b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec())] {
            let (stream, _) = listener.accept().await.unwrap();
            converse(stream, Arc::new(answer), Arc::default()).await;
        }
    });
    let probe = HttpPodClient::new(Limits::default()).unwrap().at_port(port);
    let first = probe.card(&request()).await.unwrap();
    let second = probe.card(&request()).await.unwrap();
    assert_eq!((first.name, first.protocol_version), (second.name, second.protocol_version));
    serving.await.unwrap();
}

#[tokio::test]
async fn hostile_and_broken_pods_have_bounded_cost_and_distinct_failures() {
    use ProbeOutcome::{Broken, Denied, Malformed, Redirected, Status, Timeout, TooLarge};
    let metadata = "Location: http://169.254.169.254/latest/meta-data/\r\n";
    let head =
        || b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n{".to_vec();
    let cases = [
        ("a flood", flood(), TooLarge, TooLarge),
        ("a drip", Answer::Drip(head()), Timeout, Timeout),
        ("a drip of headers", Answer::Drip(b"HTTP/1.1 200 OK\r\nX: ".to_vec()), Timeout, Timeout),
        ("silence", Answer::Mute, Timeout, Timeout),
        ("a cut body", Answer::Bytes(head()), Broken, Broken),
        ("metadata", answer("302 Found", metadata, "{}"), Redirected, Redirected),
        ("metadata, 307", answer("307 Temporary Redirect", metadata, "{}"), Redirected, Redirected),
        ("itself", answer("301 Moved Permanently", "Location: /\r\n", "{}"), Redirected, Redirected),
        ("no JSON", answer("200 OK", "", "<html>"), Malformed, Malformed),
        ("other JSON", answer("200 OK", "", "[1, 2]"), Malformed, Malformed),
        ("deep JSON", answer("200 OK", "", &"[".repeat(100_000)), Malformed, Malformed),
        ("an old agent", answer("200 OK", "", &card("0.1")), Malformed, Malformed),
        ("401", answer("401 Unauthorized", "", "{}"), Denied, Denied),
        ("403", answer("403 Forbidden", "", "{}"), Denied, Denied),
        ("404", answer("404 Not Found", "", "{}"), Status, Status),
        ("500", answer("500 Internal Server Error", "", "{}"), Status, Status),
    ];
    let probes = cases.map(|(what, behaviour, status, of_card)| async move {
        let pod = pod(behaviour).await;
        // Long enough for what is to be seen, however busy this machine is.
        let seconds = if status == Timeout { 1 } else { 20 };
        let limits = Limits { deadline: Duration::from_secs(seconds), ..Limits::default() };
        let probe = HttpPodClient::new(limits).unwrap().at_port(pod.port);
        let seen = probe.status(&request()).await.unwrap_err();
        assert_eq!(seen.outcome, status, "{what}: {seen}");
        let seen = probe.card(&request()).await.unwrap_err();
        assert_eq!(seen.outcome, of_card, "{what}, card: {seen}");
        let again = probe.card(&request()).await.unwrap_err();
        assert_eq!(again, seen, "{what}: the same cause, the same words");
        assert!(!seen.message.contains(TOKEN) && !seen.message.contains("169.254"), "{seen}");
    });
    tokio::time::timeout(Duration::from_mins(1), futures::future::join_all(probes)).await.unwrap();
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_refused() {
    let gone = pod(Answer::Mute).await;
    let probe = probe_pod(&gone);
    gone.task.abort();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, gone.port)).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(probe.status(&request()).await.unwrap_err().outcome, ProbeOutcome::Connect);
    assert_eq!(probe.card(&request()).await.unwrap_err().outcome, ProbeOutcome::Connect);
}

#[tokio::test]
async fn a_thousand_agents_fit_and_what_they_say_is_cut() {
    let long = "x".repeat(3000);
    let agent = |number: usize| {
        let tools: Vec<_> = (0..40).map(|tool| format!("tool-of-some-length-{tool}")).collect();
        serde_json::json!({"name": format!("agent-{number}"), "placement": "InProcess", "phase": "Ready", "epoch": 1,
            "activeTasks": 0, "tools": tools, "message": if number == 0 { &*long } else { "" }})
    };
    let mut report = report();
    report["agents"] = (0..1001).map(agent).collect();
    let body = report.to_string();
    assert!(body.len() > Limits::default().body, "it is one that needs a permit");
    let pod = pod(answer("200 OK", "", &body)).await;
    let probe =
        HttpPodClient::new(Limits { deadline: Duration::from_secs(20), ..Limits::default() }).unwrap();
    let probe = probe.at_port(pod.port);
    let seen = probe.status(&request()).await.unwrap();
    assert_eq!(seen.agents.len(), AGENTS);
    assert_eq!(seen.agents[0].message.as_ref().map(String::len), Some(TEXT));
    assert_eq!(probe.large.available_permits(), Limits::default().large_reports);
}

#[tokio::test]
async fn large_answers_wait_for_each_other_and_small_ones_do_not() {
    let (large, small) = (pod(flood()).await, pod(answer("200 OK", "", &report().to_string())).await);
    let limits = Limits { large_reports: 1, deadline: Duration::from_secs(2), ..Limits::default() };
    let probe = HttpPodClient::new(limits).unwrap().at_port(large.port);
    let delayed = Arc::clone(&probe.large).acquire_owned().await.unwrap();
    assert_eq!(probe.status(&request()).await.unwrap_err().outcome, ProbeOutcome::Timeout);
    drop(delayed);
    assert_eq!(probe.status(&request()).await.unwrap_err().outcome, ProbeOutcome::TooLarge);
    let _held = Arc::clone(&probe.large).acquire_owned().await.unwrap();
    let probe = probe.at_port(small.port);
    assert!(probe.status(&request()).await.is_ok());
}
