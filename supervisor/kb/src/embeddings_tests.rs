use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::*;

#[test]
fn similarity_survives_the_rounding() {
    let near = quantized(&[0.3, -0.1, 0.02]);
    assert!(similarity(&near, &quantized(&[0.6, -0.2, 0.04])).unwrap() > 0.999);
    assert!(similarity(&near, &quantized(&[-0.3, 0.1, -0.02])).unwrap() < -0.999);
    assert_eq!(similarity(&near, &quantized(&[1.0])), None, "vectors of another model");
    assert_eq!(similarity(&near, &quantized(&[0.0, 0.0, 0.0])), None);
}

#[test]
fn a_key_does_not_travel_unencrypted() {
    let runtime = runtime();
    let new = |url: &str, key: Option<&str>| {
        Provider::new(url, "m", key.map(SecretString::from), runtime.handle().clone())
            .map(|it| it.host().to_owned())
    };
    assert_eq!(new("https://a.example/v1/", Some("k")).unwrap(), "a.example");
    assert_eq!(new("http://127.0.0.1:1/v1", Some("k")).unwrap(), "127.0.0.1");
    assert_eq!(new("http://ollama:11434/v1", None).unwrap(), "ollama");
    for url in ["http://a.example/v1", "ftp://a.example", "a.example"] {
        assert!(new(url, Some("k")).is_err(), "{url}");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A provider that answers the first requests with these statuses, then with vectors in reverse order. Counts the requests.
fn serve(runtime: &tokio::runtime::Runtime, failures: Vec<u16>) -> (SocketAddr, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let answer = move |headers: HeaderMap, Json(body): Json<Value>| async move {
        let at = counted.fetch_add(1, Ordering::SeqCst);
        assert_eq!((&headers["authorization"], &body["model"]), (&"Bearer k".parse().unwrap(), &json!("m")));
        if let Some(status) = failures.get(at) {
            let status = StatusCode::from_u16(*status).unwrap();
            return (status, [("retry-after", "0"), ("location", "/elsewhere")], "slow down").into_response();
        }
        let texts = body["input"].as_array().unwrap().iter().enumerate();
        let data: Vec<Value> = texts
            .rev()
            .map(|(at, text)| json!({"index": at, "embedding": [text.as_str().unwrap().len()]}))
            .collect();
        Response::into_response(Json(json!({"data": data})).into_response())
    };
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new().route("/v1/embeddings", post(answer));
    runtime.spawn(async move { axum::serve(listener, routes).await });
    (address, count)
}

#[test]
fn an_update_repeats_what_may_succeed_later_and_a_search_does_not_wait() {
    let texts = ["a".to_owned(), "bcd".to_owned()];
    for (failures, purpose, requests, expected) in [
        (vec![429, 503], Purpose::Update, 3, Ok(vec![vec![1.0], vec![3.0]])),
        (vec![400], Purpose::Update, 1, Err("400 Bad Request: slow down")),
        (vec![302], Purpose::Update, 1, Err("302 Found: slow down")),
        (vec![500; 9], Purpose::Update, 4, Err("500 Internal Server Error: slow down")),
        (vec![503], Purpose::Search, 1, Err("503 Service Unavailable: slow down")),
    ] {
        let runtime = runtime();
        let (address, count) = serve(&runtime, failures.clone());
        let url = format!("http://{address}/v1");
        let provider = Provider::new(&url, "m", Some("k".into()), runtime.handle().clone()).unwrap();
        let embedded = provider.embed(&texts, purpose);
        let expected = expected.map_err(|reason| format!("127.0.0.1 gave no embeddings of m: {reason}"));
        assert_eq!(embedded, expected, "{failures:?}");
        assert_eq!(count.load(Ordering::SeqCst), requests, "{failures:?}");
    }
}
