use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;

use super::*;

/// An operator that is ready from the given look on.
async fn operator(ready_from: usize) -> Url {
    let looks = Arc::new(AtomicUsize::new(0));
    let answer = move || async move {
        let late = looks.fetch_add(1, Ordering::Relaxed) + 1 >= ready_from;
        if late { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/readyz", listener.local_addr().unwrap());
    let app = Router::new().route("/readyz", get(answer));
    tokio::spawn(async { axum::serve(listener, app).await });
    url.parse().unwrap()
}

#[tokio::test]
async fn it_waits_until_the_operator_is_ready() {
    let ready = Ready { url: operator(3).await, timeout: 30 };
    assert!(ready.wait().await.is_ok());
}

#[tokio::test]
async fn it_says_what_was_answered_last() {
    let ready = Ready { url: operator(usize::MAX).await, timeout: 1 };
    let error = format!("{:#}", ready.wait().await.unwrap_err());
    assert_eq!(error, "not ready within 1 s: it answered 503 Service Unavailable");
}
