//! Cards that are known, have changed, or are for some only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use caipe_a2a::ProtocolVersion::{V0_3, V1_0};
use caipe_a2a::client::{A2aClient, CardCache, ClientError, ClientOptions, probe};
use caipe_a2a::model::ListTasksRequest;
use serde_json::{Value, json};

use crate::agent::start;
use crate::peer::{Answer, Peer, card};
use crate::signatures;

/// A peer that serves `cards[version]` with a tag and an age, and answers 304 for a matching tag.
async fn versions(age: &'static str, cards: Vec<Value>) -> (Peer, Arc<AtomicUsize>) {
    let version = Arc::new(AtomicUsize::new(0));
    let current = Arc::clone(&version);
    let peer = Peer::raw(move |request| {
        let at = current.load(Ordering::Relaxed);
        let tag = format!("\"v{at}\"");
        let headers: &'static str = format!("etag: {tag}\r\ncache-control: {age}\r\n").leak();
        if request.headers.get("if-none-match") == Some(&tag) {
            return Answer::Whole(304, headers, String::new());
        }
        Answer::Whole(200, headers, cards[at].to_string())
    })
    .await;
    (peer, version)
}

async fn connect(peer: &Peer, cache: &CardCache) -> A2aClient {
    A2aClient::connect_with(&peer.url, reqwest::Client::new(), ClientOptions::default(), cache).await.unwrap()
}

fn both(name: &str) -> Value {
    json!({"name": name, "supportedInterfaces": [
        {"url": "/old", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        {"url": "/new", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "blue"},
    ]})
}

#[tokio::test]
async fn a_fresh_card_is_not_asked_for_again_and_a_stale_one_only_whether_it_changed() {
    let cache = CardCache::default();
    let (fresh, _) = versions("public, max-age=60", vec![card(V1_0)]).await;
    let (stale, version) = versions("no-cache", vec![card(V1_0), both("Changed")]).await;
    for peer in [&fresh, &stale] {
        for _ in 0..3 {
            assert_eq!(connect(peer, &cache).await.card().name, "Peer");
        }
    }
    assert_eq!(fresh.requests().len(), 1);
    let tags: Vec<_> =
        stale.requests().iter().map(|request| request.headers.get("if-none-match").cloned()).collect();
    assert_eq!(tags, [None, Some("\"v0\"".to_owned()), Some("\"v0\"".to_owned())]);
    version.store(1, Ordering::Relaxed);
    let client = connect(&stale, &cache.clone()).await;
    assert_eq!((client.card().name.as_str(), client.endpoint().path()), ("Changed", "/new"));
    assert_eq!(cache.len(), 2);
}

#[tokio::test]
async fn a_changed_card_is_followed_by_all_who_share_the_client() {
    let (peer, version) = versions("max-age=60", vec![card(V0_3), both("Changed")]).await;
    let client =
        A2aClient::connect(&peer.url, reqwest::Client::new(), ClientOptions::default()).await.unwrap();
    let clone = client.clone();
    assert!(!client.refresh().await.unwrap());
    assert_eq!((clone.version(), clone.endpoint().path()), (V0_3, "/"));
    version.store(1, Ordering::Relaxed);
    assert!(client.refresh().await.unwrap());
    assert_eq!((clone.version(), clone.endpoint().path()), (V1_0, "/new"));
    let document: Value = serde_json::from_slice(&clone.card_document()).unwrap();
    assert_eq!(document, both("Changed"));
}

#[tokio::test]
async fn a_card_that_cannot_be_used_leaves_the_client_as_it_was() {
    let (peer, version) =
        versions("no-cache", vec![card(V1_0), json!({"name": "x", "supportedInterfaces": []})]).await;
    let client =
        A2aClient::connect(&peer.url, reqwest::Client::new(), ClientOptions::default()).await.unwrap();
    version.store(1, Ordering::Relaxed);
    assert_eq!(client.refresh().await.unwrap_err().category(), "no_interface");
    assert_eq!((client.version(), client.card().name.as_str()), (V1_0, "Peer"));
}

#[tokio::test]
async fn cards_are_cached_by_token_and_the_oldest_are_dropped() {
    let (peer, _) = versions("max-age=60", vec![card(V1_0)]).await;
    let cache = CardCache::new(2);
    let connect = |token: Option<&str>| {
        let bearer = token.map(|token| token.to_owned().into());
        let options = ClientOptions { bearer, ..ClientOptions::default() };
        A2aClient::connect_with(peer.url.clone().leak(), reqwest::Client::new(), options, &cache)
    };
    for (token, requests) in
        [(None, 1), (Some("a"), 2), (None, 2), (Some("a"), 2), (Some("b"), 3), (Some("a"), 3), (None, 4)]
    {
        connect(token).await.unwrap();
        assert_eq!(peer.requests().len(), requests, "{token:?}");
    }
    assert_eq!(cache.len(), 2);
    assert!(!format!("{cache:?}").contains("\"b\""), "tokens are not kept");
}

#[tokio::test]
async fn a_probe_tells_what_is_there_how_fast_and_whether_it_changed() {
    let cache = CardCache::default();
    let (peer, version) = versions("max-age=3600", vec![card(V0_3), both("Changed")]).await;
    let (http, options) = (reqwest::Client::new(), ClientOptions::default());
    let probe_once = || probe(&peer.url, &http, &options, &cache);
    let first = probe_once().await.unwrap();
    assert_eq!((first.version, first.changed), (V0_3, true));
    assert!(first.latency > Duration::ZERO);
    assert!(!probe_once().await.unwrap().changed);
    version.store(1, Ordering::Relaxed);
    let changed = probe_once().await.unwrap();
    assert_eq!((changed.version, changed.changed, changed.endpoint.path()), (V1_0, true, "/new"));
    assert_eq!(peer.requests().len(), 3, "a probe always asks");

    let gone = Peer::raw(|_| Answer::Whole(500, "", "no".to_owned())).await;
    let error = probe(&gone.url, &http, &options, &cache).await.unwrap_err();
    assert_eq!(error.category(), "status", "{error}");
}

#[tokio::test]
async fn our_own_card_is_found_unchanged() {
    let server = start().await;
    let cache = CardCache::default();
    let (http, options) = (reqwest::Client::new(), ClientOptions::default());
    assert!(probe(&server.url, &http, &options, &cache).await.unwrap().changed);
    assert!(!probe(&server.url, &http, &options, &cache).await.unwrap().changed);
}

#[tokio::test]
async fn the_card_of_0_2_is_found_and_looked_for_there_next_time() {
    let peer = Peer::raw(|request| {
        if request.path.ends_with("agent.json") {
            Answer::json(&card(V0_3))
        } else {
            Answer::Whole(404, "", String::new())
        }
    })
    .await;
    let cache = CardCache::default();
    connect(&peer, &cache).await;
    connect(&peer, &cache).await;
    let paths: Vec<_> = peer.requests().into_iter().map(|request| request.path).collect();
    let (new, old) = ("/.well-known/agent-card.json", "/.well-known/agent.json");
    assert_eq!(paths, [new, old, old]);
}

#[tokio::test]
async fn the_extended_card_takes_the_place_of_the_public_one() {
    for (version, method, mut extended) in [
        (V1_0, "GetExtendedAgentCard", both("More")),
        (V0_3, "agent/getAuthenticatedExtendedCard", card(V0_3)),
    ] {
        extended["name"] = json!("More");
        let peer = Peer::start(version, move |_| Answer::result(&extended)).await;
        let options = ClientOptions { version: Some(version), ..ClientOptions::default() };
        let client = A2aClient::connect(&peer.url, reqwest::Client::new(), options).await.unwrap();
        assert_eq!(client.extended_card().await.unwrap().name, "More");
        assert_eq!(client.clone().card().name, "More");
        assert_eq!(peer.methods(), [method]);
        assert!(!client.refresh().await.unwrap());
        assert_eq!(client.card().name, "More", "it stays while the public one does");
    }
}

#[tokio::test]
async fn tasks_are_listed_in_1_0_only() {
    let peer = Peer::raw(|request| {
        if request.is_card() {
            return Answer::json(&both("Peer"));
        }
        Answer::result(&json!({"tasks": [{"id": "t", "status": {"state": "TASK_STATE_WORKING"}}],
            "nextPageToken": "more", "pageSize": 1, "totalSize": 7}))
    })
    .await;
    let client =
        A2aClient::connect(&peer.url, reqwest::Client::new(), ClientOptions::default()).await.unwrap();
    let page = client.list(ListTasksRequest { page_size: Some(1), ..Default::default() }).await.unwrap();
    assert_eq!((page.tasks.len(), page.next_page_token.as_str(), page.total_size), (1, "more", 7));
    let call = &peer.calls()[0];
    assert_eq!((call.method(), call.path.as_str()), ("ListTasks", "/new"));
    assert_eq!(call.body["params"], json!({"tenant": "blue", "pageSize": 1}));

    let options = ClientOptions { version: Some(V0_3), ..ClientOptions::default() };
    let old = A2aClient::connect(&peer.url, reqwest::Client::new(), options).await.unwrap();
    let error = old.list(ListTasksRequest::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::NotInVersion { .. }), "{error}");
    assert!(error.to_string().contains("ListTasks") && error.to_string().contains("0.3"), "{error}");
}

#[tokio::test]
async fn a_card_is_used_only_if_somebody_trusted_has_signed_it() {
    let (ours, theirs) = (signatures::signer(&signatures::p256()), signatures::signer(&signatures::p256()));
    let mut signed = caipe_a2a::card::parse(both("Signed").to_string().as_bytes()).unwrap();
    caipe_a2a::card::sign(&mut signed, &ours).unwrap();
    let document: Value =
        serde_json::from_slice(&caipe_a2a::card::document(&signed, false).unwrap()).unwrap();
    let mut meddled = document.clone();
    meddled["supportedInterfaces"][1]["url"] = json!("/elsewhere");
    let trusting = |signer| {
        let card_keys = Some(Arc::new(signatures::keys(signer)));
        ClientOptions { card_keys, ..ClientOptions::default() }
    };
    let http = reqwest::Client::new();
    for (card, signer, good) in [
        (&document, &ours, true),
        (&document, &theirs, false),
        (&meddled, &ours, false),
        (&both("Unsigned"), &ours, false),
    ] {
        let (peer, _) = versions("max-age=60", vec![card.clone()]).await;
        let cache = CardCache::default();
        connect(&peer, &cache).await;
        let options = trusting(signer);
        let results = [
            A2aClient::connect_with(&peer.url, http.clone(), options.clone(), &cache).await.err(),
            A2aClient::connect(&peer.url, http.clone(), options.clone()).await.err(),
            probe(&peer.url, &http, &options, &cache).await.err(),
        ];
        let refused: Vec<_> = results.iter().map(|error| error.as_ref().map(ClientError::category)).collect();
        assert_eq!(refused, [if good { None } else { Some("untrusted") }; 3], "{results:?}");
    }
}
