use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;

/// Redirects `/N` to `/N-1`, answers at `/0`, redirects `/to/PORT` to that port, and counts who asks.
struct Server {
    port: u16,
    asked: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn redirect(to: String) -> Response {
    (StatusCode::TEMPORARY_REDIRECT, [("location", to)]).into_response()
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let step = async move |Path(left): Path<usize>| {
            counted.fetch_add(1, Ordering::SeqCst);
            left.checked_sub(1)
                .map_or_else(|| StatusCode::OK.into_response(), |left| redirect(format!("/{left}")))
        };
        let leave = async |Path(host): Path<String>| redirect(format!("http://{host}/0"));
        let app = Router::new().route("/{left}", get(step)).route("/to/{host}", get(leave));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { port, asked, task }
    }

    /// Asks for a path; this server alone is allowed.
    async fn ask(&self, redirects: Redirects, path: &str) -> reqwest::Result<reqwest::Response> {
        let allowed = format!("127.0.0.1:{}", self.port);
        let client = Client::new(Screen::new(allowed.parse().unwrap()), redirects).unwrap();
        let url = format!("http://{allowed}/{path}").parse().unwrap();
        client.request(Method::GET, url).unwrap().send().await
    }
}

#[tokio::test]
async fn redirects_are_followed_so_many_times_and_no_more() {
    let cases = [
        (Redirects::Return, 0, Some(200), 1),
        (Redirects::Return, 1, Some(307), 1),
        (Redirects::Follow(0), 1, None, 1),
        (Redirects::Follow(2), 2, Some(200), 3),
        (Redirects::Follow(2), 3, None, 3),
    ];
    for (redirects, steps, status, asked) in cases {
        let server = Server::start().await;
        let answer = server.ask(redirects, &steps.to_string()).await;
        let case = format!("{redirects:?} {steps}: {answer:?}");
        assert_eq!(answer.ok().map(|answer| answer.status().as_u16()), status, "{case}");
        assert_eq!(server.asked.load(Ordering::SeqCst), asked, "{case}");
    }
}

#[tokio::test]
async fn a_redirect_to_what_is_not_reached_is_refused_unasked() {
    let (server, inner) = (Server::start().await, Server::start().await);
    for host in ["127.0.0.1", "127.1", "[::1]", "localhost"] {
        let path = format!("to/{host}:{}", inner.port);
        let error = server.ask(Redirects::Follow(5), &path).await.unwrap_err();
        assert!(refusal(&error).is_some(), "{host}: {error:?}");
    }
    assert_eq!(inner.asked.load(Ordering::SeqCst), 0);
    let answer = server.ask(Redirects::Follow(5), &format!("to/127.0.0.1:{}", server.port)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}
