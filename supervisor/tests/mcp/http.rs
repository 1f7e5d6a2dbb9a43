//! Servers at a URL.

use std::collections::BTreeMap;
use std::time::Duration;

use caipe_fixtures::mcp::{Mode, Options, serve};
use caipe_supervisor::mcp::{ServerPhase, ServerSpec, Transport};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::harness::tests;
use crate::support::{Bench, eventually, message, names, notes, state_file, status};

tests![
    offers_and_calls,
    names_a_server_that_is_not_there,
    names_a_server_that_refuses_us,
    refuses_a_url_that_is_none,
    gives_a_hanging_server_its_deadline,
    cancels_a_call_that_takes_too_long,
    reconnects_to_a_server_that_restarts,
    ends_a_call_with_an_oversized_result,
];

/// A stand-in in this process; ends when aborted.
async fn stand_in(options: Options) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    (url, tokio::spawn(async move { serve(listener, options).await.unwrap() }))
}

fn spec(url: &str) -> ServerSpec {
    ServerSpec::new("web", Transport::http(url))
}

fn with_authorization(url: &str, value: &str) -> ServerSpec {
    let headers = BTreeMap::from([("Authorization".to_owned(), value.to_owned())]);
    ServerSpec::new("web", Transport::Http { url: url.to_owned(), headers })
}

async fn offers_and_calls() {
    let (url, server) = stand_in(Options::default()).await;
    let bench = Bench::settled([with_authorization(&url, "Bearer ${NO_SUCH:-letmein-please}")]).await;
    let view = bench.toolbox.view();
    assert_eq!(
        status(&view, "web").protocol_version.as_deref(),
        Some("2025-06-18"),
        "{}",
        message(&view, "web")
    );
    assert_eq!(names(&view).len(), 8);
    assert_eq!(bench.ask("echo", json!({"text": "hi"})).await, "hi");
    assert_eq!(bench.refusal("fail", json!({})).await, "it did not work");
    bench.finish().await;
    server.abort();
}

async fn names_a_server_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let bench = Bench::settled([spec(&url)]).await;
    let message = message(&bench.toolbox.view(), "web");
    assert!(message.contains("Connection refused"), "{message}");
    bench.finish().await;
}

async fn names_a_server_that_refuses_us() {
    let (url, server) = stand_in(Options::default()).await;
    let bench = Bench::settled([with_authorization(&url, "Bearer ${STAND_IN_LOGIN}")]).await;
    let message = message(&bench.toolbox.view(), "web");
    assert!(message.contains("401") && !message.contains("hunter2"), "{message}");
    bench.finish().await;
    server.abort();
}

async fn refuses_a_url_that_is_none() {
    let bench = Bench::settled([spec("file:///etc/passwd")]).await;
    let message = message(&bench.toolbox.view(), "web");
    assert!(message.contains("failed to use url: not a valid http or https URL"), "{message}");
    bench.finish().await;
}

async fn gives_a_hanging_server_its_deadline() {
    let (url, server) = stand_in(Options { mode: Mode::HangAtStart, ..Options::default() }).await;
    let mut spec = spec(&url);
    spec.start_deadline = Duration::from_millis(300);
    let bench = Bench::settled([spec]).await;
    let message = message(&bench.toolbox.view(), "web");
    assert!(message.contains("within 300ms"), "{message}");
    bench.finish().await;
    server.abort();
}

async fn cancels_a_call_that_takes_too_long() {
    let (_directory, path, state) = state_file();
    let options = Options { mode: Mode::HangInCall, state: Some(state.into()), ..Options::default() };
    let (url, server) = stand_in(options).await;
    let mut spec = spec(&url);
    spec.call_timeout = Duration::from_millis(500);
    let bench = Bench::settled([spec]).await;
    let refusal = bench.refusal("hang", json!({})).await;
    assert!(refusal.contains("did not finish within 500ms"), "{refusal}");
    eventually(|| notes(&path).contains("cancelled")).await;
    assert_eq!(bench.ask("echo", json!({"text": "hi"})).await, "hi");
    bench.finish().await;
    server.abort();
}

async fn ends_a_call_with_an_oversized_result() {
    for mode in [Mode::Ok, Mode::EventStreams] {
        let (url, server) = stand_in(Options { mode, ..Options::default() }).await;
        let bench = Bench::settled([spec(&url)]).await;
        let refusal = bench.refusal("big", json!({"chars": 17 * 1024 * 1024})).await;
        let size = "result is larger than 16 MiB";
        let explains = refusal.replace("result of tool `big` (server `web`)", "result").contains(size);
        assert!(explains && refusal.contains("`big`") && refusal.contains("Ask for less"), "{refusal}");
        assert_eq!(bench.ask("echo", json!({"text": "undisturbed"})).await, "undisturbed");
        bench.finish().await;
        server.abort();
    }
}

async fn reconnects_to_a_server_that_restarts() {
    let (url, server) = stand_in(Options::default()).await;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let bench = Bench::settled([spec(&url)]).await;
    server.abort();
    eventually(|| server.is_finished()).await;
    let refusal = bench.refusal("echo", json!({"text": "hi"})).await;
    assert!(refusal.contains("server `web`"), "{refusal}");
    let view = bench.until(|view| status(view, "web").phase != ServerPhase::Ready).await;
    assert_eq!(view.tools.len(), 8, "the last good list stays");
    let listener = TcpListener::bind(address).await.unwrap();
    let server = tokio::spawn(async move { serve(listener, Options::default()).await.unwrap() });
    bench.until_phase("web", ServerPhase::Ready).await;
    assert_eq!(bench.ask("echo", json!({"text": "again"})).await, "again");
    bench.finish().await;
    server.abort();
}
