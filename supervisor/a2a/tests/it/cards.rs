//! The card over HTTP, for clients of both versions.

use caipe_a2a::card::{self, CardBuilder, CardMode};
use caipe_a2a::model::{AgentCapabilities, AgentInterface};
use caipe_a2a::server::ServerOptions;
use reqwest::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, LAST_MODIFIED, VARY};
use serde_json::{Value, json};

use crate::agent::{Running, start, start_with};

async fn get(server: &Running, path: &str, version: Option<&str>) -> Value {
    let mut request = reqwest::Client::new().get(format!("{}{path}", server.url.trim_end_matches('/')));
    if let Some(version) = version {
        request = request.header("a2a-version", version);
    }
    request.send().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn the_merged_card_has_what_both_versions_require() {
    let server = start().await;
    for path in [card::PATH, card::OLD_PATH] {
        let card = get(&server, path, None).await;
        for member in ["name", "description", "version", "capabilities", "skills", "defaultInputModes"] {
            assert!(card.get(member).is_some(), "{member}: {card}");
        }
        let url = server.url.trim_end_matches('/');
        assert_eq!(card["url"], url);
        assert_eq!(card["protocolVersion"], "0.3.0");
        assert_eq!(card["preferredTransport"], "JSONRPC");
        assert_eq!(card["additionalInterfaces"], json!([{"url": url, "transport": "JSONRPC"}]));
        let versions: Vec<_> =
            card["supportedInterfaces"].as_array().unwrap().iter().map(|i| &i["protocolVersion"]).collect();
        assert_eq!(versions, ["1.0", "0.3"]);
        assert_eq!(card["capabilities"]["streaming"], true);
        assert_eq!(card["defaultInputModes"], json!(["text", "text/plain"]));
    }
}

#[tokio::test]
async fn who_says_1_0_gets_the_pure_card() {
    let server = start().await;
    for version in [Some("1.0"), Some("1.1")] {
        let card = get(&server, card::PATH, version).await;
        for old in ["url", "protocolVersion", "preferredTransport", "additionalInterfaces", "security"] {
            assert!(card.get(old).is_none(), "{old}: {card}");
        }
        assert!(card.get("supportsAuthenticatedExtendedCard").is_none());
    }
    assert_eq!(get(&server, card::PATH, Some("0.3")).await["url"], server.url.trim_end_matches('/'));
    let pure = start_with(ServerOptions { card: CardMode::V1, ..ServerOptions::default() }, |_| ()).await;
    assert!(get(&pure, card::PATH, None).await.get("url").is_none());
}

#[tokio::test]
async fn a_cached_card_is_confirmed() {
    let server = start().await;
    let http = reqwest::Client::new();
    let url = format!("{}.well-known/agent-card.json", server.url);
    let first = http.get(&url).send().await.unwrap();
    let headers = first.headers().clone();
    assert_eq!(headers[VARY], "A2A-Version");
    assert_eq!(headers[CACHE_CONTROL], "public, max-age=60");
    assert!(headers[LAST_MODIFIED].to_str().unwrap().ends_with("GMT"));
    let etag = headers[ETAG].to_str().unwrap().to_owned();
    for known in [etag.clone(), format!("\"other\", W/{etag}"), "*".to_owned()] {
        let response = http.get(&url).header(IF_NONE_MATCH, &known).send().await.unwrap();
        assert_eq!(response.status(), 304, "{known}");
        assert_eq!(response.headers()[ETAG], etag);
        assert_eq!(response.headers()[LAST_MODIFIED], headers[LAST_MODIFIED]);
        assert!(response.bytes().await.unwrap().is_empty());
    }
    let other = http.get(&url).header(IF_NONE_MATCH, "\"other\"").send().await.unwrap();
    assert_eq!(other.status(), 200);
    let pure = http.get(&url).header("a2a-version", "1.0").header(IF_NONE_MATCH, &etag).send().await.unwrap();
    assert_eq!(pure.status(), 200, "the two documents have different tags");
}

#[test]
fn security_gets_in_both_shapes_and_read_from_either() {
    let card = CardBuilder::new("n", "d", "https://a.example/", "1").bearer("a token").build();
    let document: Value = serde_json::from_slice(&card::document(&card, true).unwrap()).unwrap();
    assert_eq!(
        document["securitySchemes"]["bearer"],
        json!({"httpAuthSecurityScheme": {"description": "a token", "scheme": "bearer"},
            "type": "http", "scheme": "bearer", "description": "a token"})
    );
    assert_eq!(document["security"], json!([{"bearer": []}]));
    assert_eq!(card::parse(document.to_string().as_bytes()).unwrap(), card);

    let mut old = document;
    old.as_object_mut().unwrap().remove("supportedInterfaces");
    let read = card::parse(old.to_string().as_bytes()).unwrap();
    assert_eq!(read.supported_interfaces[0].url, "https://a.example");
    assert_eq!(read.security_schemes, card.security_schemes);
    assert_eq!(read.security_requirements, card.security_requirements);
}

#[test]
fn a_card_of_0_3_is_read() {
    let card = json!({"name": "Old", "description": "d", "url": "http://old/", "version": "0.1",
        "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": "http://old/", "transport": "JSONRPC"},
            {"url": "http://old/v1", "transport": "HTTP+JSON"}],
        "capabilities": {"streaming": true, "stateTransitionHistory": false, "pushNotifications": null},
        "supportsAuthenticatedExtendedCard": true,
        "securitySchemes": {"odd": {"type": "quantum"}},
        "defaultInputModes": ["text"], "defaultOutputModes": ["text"],
        "skills": [{"id": "s", "name": "S", "description": "", "tags": ["a"]}]});
    let card = card::parse(card.to_string().as_bytes()).unwrap();
    let interface = |url: &str, binding: &str| AgentInterface {
        url: url.to_owned(),
        protocol_binding: binding.to_owned(),
        protocol_version: "0.3".to_owned(),
        tenant: None,
    };
    assert_eq!(
        card.supported_interfaces,
        [interface("http://old/", "JSONRPC"), interface("http://old/v1", "HTTP+JSON")]
    );
    let capabilities = AgentCapabilities { streaming: true, extended_agent_card: true, ..Default::default() };
    assert_eq!(card.capabilities, capabilities);
    assert!(card.security_schemes.is_empty(), "an unknown scheme does not make the card unreadable");
}

#[test]
fn the_card_of_the_fixtures_is_the_same_for_clients_of_both_versions() {
    let document = include_str!("../../../../fixtures/wire/a2a_agent_card.json");
    let card = card::parse(document.as_bytes()).unwrap();
    assert_eq!((card.name.as_str(), card.version.as_str()), ("mock-agent", "1.0.0"));
    assert!(card.capabilities.streaming);
    assert_eq!(card.skills.iter().map(|skill| skill.id.as_str()).collect::<Vec<_>>(), ["test-skill"]);
    let [interface] = &card.supported_interfaces[..] else { panic!("{:?}", card.supported_interfaces) };
    assert_eq!(
        (&*interface.url, &*interface.protocol_binding, &*interface.protocol_version),
        ("http://mock-agent:8000", "JSONRPC", "0.3")
    );
    // A client of 0.3 reads the other members.
    let mut old: Value = serde_json::from_str(document).unwrap();
    old.as_object_mut().unwrap().remove("supportedInterfaces").unwrap();
    assert_eq!(card::parse(old.to_string().as_bytes()).unwrap(), card);
}

#[test]
fn a_card_that_is_none_is_refused_with_its_place() {
    for (text, says) in [
        ("<html>", "failed to read the agent card"),
        ("[]", "failed to read the agent card"),
        (r#"{"name": "x"}"#, "url"),
        (r#"{"name": "x", "supportedInterfaces": [{"url": 5}]}"#, "supportedInterfaces[0].url"),
    ] {
        let error = card::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

/// Clients append a path to a URL of the card.
#[test]
fn the_urls_of_a_card_have_no_trailing_slash() {
    for (base, url) in [
        ("http://h:8000/", "http://h:8000"),
        ("http://h:8000", "http://h:8000"),
        ("https://h/caipe/", "https://h/caipe"),
        ("https://h/caipe//", "https://h/caipe"),
    ] {
        let other = AgentInterface::new(base, "HTTP+JSON", "0.3");
        let card = CardBuilder::new("n", "d", base, "1").rest().interface(other).build();
        let document: Value = serde_json::from_slice(&card::document(&card, true).unwrap()).unwrap();
        assert_eq!(document["url"], url, "{base}");
        for list in ["supportedInterfaces", "additionalInterfaces"] {
            let interfaces = document[list].as_array().unwrap();
            assert!(
                interfaces.len() >= 2 && interfaces.iter().all(|i| i["url"] == url),
                "{base}: {document}"
            );
        }
    }
}

/// An HTTP client sends `POST /` for a URL without a path.
#[tokio::test]
async fn the_url_of_the_card_answers_json_rpc_and_rest() {
    let server = start_with(ServerOptions::default(), |_| ()).await;
    let card = get(&server, card::PATH, None).await;
    let url = card["url"].as_str().unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "nope"}});
    let http = reqwest::Client::new();
    let request = http.post(url).header("content-type", "application/json").body(body.to_string());
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["error"]["code"], -32001, "{answer}");
    let listed = http.get(format!("{url}/tasks")).header("a2a-version", "1.0").send().await.unwrap();
    assert_eq!(listed.status(), 200);
}
