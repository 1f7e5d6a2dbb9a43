//! Failures by their names.

use caipe_a2a::ProtocolVersion::V1_0;
use caipe_a2a::client::{A2aClient, ClientError, ClientOptions, http_builder};
use caipe_a2a::model::{ListTasksRequest, Message, SendMessageRequest};
use serde_json::json;

use crate::peer::{Answer, Peer, card};

async fn connect(url: &str) -> Result<A2aClient, ClientError> {
    A2aClient::connect(url, http_builder().build().unwrap(), ClientOptions::default()).await
}

fn ask() -> SendMessageRequest {
    SendMessageRequest::new(Message::user("m1", "x"))
}

/// The failures of each way to call a peer that answers everything but the card with `answer`.
async fn failures(answer: Answer) -> Vec<ClientError> {
    let peer = Peer::start(V1_0, move |_| answer.clone()).await;
    let client = connect(&peer.url).await.unwrap();
    let mut failures = vec![client.send(ask()).await.unwrap_err(), client.get("t", None).await.unwrap_err()];
    failures.extend(client.cancel("t").await.err());
    failures.extend(client.stream(ask()).await.err());
    failures.extend(client.subscribe("t", None).await.err());
    failures.extend(client.list(ListTasksRequest::default()).await.err());
    failures.extend(client.extended_card().await.err());
    assert_eq!(failures.len(), 7);
    failures
}

#[tokio::test]
async fn each_answer_that_is_none_is_named_exactly() {
    let whole = |status, headers, body: &str| Answer::Whole(status, headers, body.to_owned());
    let html = "content-type: text/html; charset=utf-8\r\n";
    for (answer, category, says) in [
        (
            whole(401, "www-authenticate: Bearer realm=\"a\"\r\n", ""),
            "denied",
            "401 Unauthorized from 127.0.0.1:",
        ),
        (whole(401, "www-authenticate: Basic\r\n", "who?"), "denied", "which wants Basic credentials: who?"),
        (whole(403, "", "{\"error\":{\"code\":1,\"message\":\"m\"}}"), "denied", "403"),
        (
            whole(200, html, "<html>\n<h1>Welcome</h1>"),
            "content_type",
            "text/html; charset=utf-8 instead of JSON: <html> <h1>Welcome",
        ),
        (
            whole(200, "content-type: text/plain\r\n", "{\"error\":{\"code\":-7,\"message\":\"plain\"}}"),
            "remote",
            "plain (-7)",
        ),
        (whole(200, "", "{\"result\":"), "protocol", "{\"result\":"),
        (whole(200, "", "[]"), "protocol", "not a JSON-RPC response"),
        (whole(200, "", "{\"error\":\"text\"}"), "protocol", "text"),
        (whole(500, html, "<h1>oops"), "status", "500 Internal Server Error"),
        (whole(400, "", "{\"error\":{\"code\":-32602,\"message\":\"bad\"}}"), "remote", "bad (-32602)"),
        (Answer::HangUp, "broken", "127.0.0.1:"),
        (
            Answer::result(
                &json!({"task": {"id": "t", "status": {"state": 7}}, "tasks": 7, "status": {"state": 7}}),
            ),
            "",
            "7",
        ),
    ] {
        for error in failures(answer.clone()).await {
            let text = error.to_string();
            assert!(
                category.is_empty() || error.category() == category,
                "{answer:?}: {}: {text}",
                error.category()
            );
            assert!(category.is_empty() || text.contains(says), "{answer:?}: {text}");
        }
    }
}

#[tokio::test]
async fn a_wrong_shape_says_where() {
    let peer = Peer::start(V1_0, |_| {
        Answer::result(&json!({"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}, "artifacts": [{"artifactId": 7}]}}))
    })
    .await;
    let error = connect(&peer.url).await.unwrap().send(ask()).await.unwrap_err();
    assert!(error.to_string().contains("task.artifacts[0].artifactId"), "{error}");
}

#[tokio::test]
async fn a_name_that_nobody_has_is_a_failed_look_up() {
    // RFC 6761: this name never resolves.
    let error = connect("http://nobody.invalid/").await.unwrap_err();
    assert_eq!(error.category(), "dns", "{error:?}");
    assert!(error.to_string().contains("nobody.invalid"), "{error}");
}

#[tokio::test]
async fn a_page_instead_of_a_card_is_named() {
    let page =
        Peer::raw(|_| Answer::Whole(200, "content-type: text/html\r\n", "<h1>Hello</h1>".to_owned())).await;
    assert_eq!(connect(&page.url).await.unwrap_err().category(), "content_type");
    let other = Peer::raw(|_| Answer::json(&json!({"openapi": "3.1.0"}))).await;
    let error = connect(&other.url).await.unwrap_err();
    assert!(error.category() == "card" && error.to_string().contains("name"), "{error}");
}

#[tokio::test]
async fn neither_token_nor_message_goes_to_another_origin() {
    let thief = Peer::start(V1_0, |_| Answer::error(-1)).await;
    let to_thief: &'static str = format!("location: {}\r\n", thief.url).leak();
    for http in [http_builder().build().unwrap(), reqwest::Client::new()] {
        let peer = Peer::raw(move |request| {
            if request.is_card() {
                Answer::json(&card(V1_0))
            } else {
                Answer::Whole(307, to_thief, String::new())
            }
        })
        .await;
        let options = ClientOptions { bearer: Some("s3cret".to_owned().into()), ..ClientOptions::default() };
        let client = A2aClient::connect(&peer.url, http.clone(), options.clone()).await.unwrap();
        for error in [client.send(ask()).await.unwrap_err(), client.stream(ask()).await.unwrap_err()] {
            assert!(
                matches!(&error, ClientError::Redirected { to, .. } if thief.url.starts_with(to)),
                "{error}"
            );
        }
        let cards = Peer::raw(move |_| Answer::Whole(302, to_thief, String::new())).await;
        let error = A2aClient::connect(&cards.url, http, options).await.unwrap_err();
        assert_eq!(error.category(), "redirected", "{error}");
        assert!(thief.requests().iter().all(|request| !request.headers.contains_key("authorization")));
    }
}

#[tokio::test]
async fn with_our_own_http_client_a_foreign_origin_gets_nothing_and_the_same_one_is_followed() {
    let thief = Peer::start(V1_0, |_| Answer::error(-1)).await;
    let to_thief: &'static str = format!("location: {}\r\n", thief.url).leak();
    let peer = Peer::raw(move |request| match request.path.as_str() {
        "/moved" => Answer::Whole(307, to_thief, String::new()),
        "/" => Answer::Whole(308, "location: /here\r\n", String::new()),
        "/here" => Answer::result(&json!({"id": "t", "status": {"state": "TASK_STATE_WORKING"}})),
        _ => Answer::json(&card(V1_0)),
    })
    .await;
    let client = connect(&peer.url).await.unwrap();
    assert_eq!(client.get("t", None).await.unwrap().id, "t");
    let elsewhere = Peer::raw(move |_| Answer::Whole(307, to_thief, String::new())).await;
    assert_eq!(connect(&elsewhere.url).await.unwrap_err().category(), "redirected");
    assert!(thief.requests().is_empty());
}
