use super::*;
use crate::model::AgentInterface;

fn card(interfaces: &[(&str, &str, &str)]) -> AgentCard {
    let interface = |(url, binding, version): &(&str, &str, &str)| AgentInterface {
        url: (*url).to_owned(),
        protocol_binding: (*binding).to_owned(),
        protocol_version: (*version).to_owned(),
        tenant: None,
    };
    AgentCard { supported_interfaces: interfaces.iter().map(interface).collect(), ..AgentCard::default() }
}

#[test]
fn the_first_json_rpc_interface_of_the_newest_version_is_chosen() {
    use ProtocolVersion::{V0_3, V1_0};
    let options = ClientOptions::default();
    for (interfaces, base, expected) in [
        (&[("http://a/", "JSONRPC", "1.0")][..], "http://a/", Some(("http://a/", V1_0))),
        (
            &[("http://a/3", "JSONRPC", "0.3"), ("http://a/1", "JSONRPC", "1.0")],
            "http://a/",
            Some(("http://a/1", V1_0)),
        ),
        (
            &[("http://a/1", "JSONRPC", "1.0"), ("http://a/2", "JSONRPC", "1.1")],
            "http://a/",
            Some(("http://a/1", V1_0)),
        ),
        (
            &[("http://a/g", "GRPC", "1.0"), ("http://a/3", "jsonrpc", "0.3.0")],
            "http://a/",
            Some(("http://a/3", V0_3)),
        ),
        (&[("http://a/x", "JSONRPC", "2.0")], "http://a/", None),
        (&[("http://a/x", "JSONRPC", "")], "http://a/", None),
        (&[("http://a/x", "HTTP+JSON", "1.0")], "http://a/", None),
        (&[], "http://a/", None),
        // Another origin than the one asked for gives way to it; the same one may name a path.
        (
            &[("http://0.0.0.0:8000/", "JSONRPC", "0.3")],
            "http://a:8000/sub",
            Some(("http://a:8000/sub", V0_3)),
        ),
        (&[("https://a/", "JSONRPC", "1.0")], "http://a/", Some(("http://a/", V1_0))),
        (&[("/rpc", "JSONRPC", "1.0")], "http://a/sub", Some(("http://a/rpc", V1_0))),
        (&[("http://[broken", "JSONRPC", "1.0")], "http://a/", Some(("http://a/", V1_0))),
    ] {
        let base = base_url(base).unwrap();
        let chosen = choose(&card(interfaces), &base, &options).ok();
        let chosen = chosen.map(|chosen| (chosen.endpoint.to_string(), chosen.version));
        let expected = expected.map(|(url, version): (&str, _)| (url.to_owned(), version));
        assert_eq!(chosen, expected, "{interfaces:?}");
    }
}

#[test]
fn a_fixed_version_is_spoken_or_none() {
    let base = base_url("http://a/").unwrap();
    let options = |version| ClientOptions { version: Some(version), ..ClientOptions::default() };
    let both = card(&[("http://a/", "JSONRPC", "1.0"), ("http://a/", "JSONRPC", "0.3")]);
    let chosen = choose(&both, &base, &options(ProtocolVersion::V0_3)).unwrap();
    assert_eq!(chosen.version, ProtocolVersion::V0_3);
    let old = card(&[("http://a/", "JSONRPC", "0.3")]);
    let error = choose(&old, &base, &options(ProtocolVersion::V1_0)).unwrap_err().to_string();
    assert!(error.contains("JSONRPC of 0.3") && error.contains("JSONRPC of 1.0 is needed"), "{error}");
}

#[test]
fn a_card_is_followed_to_another_host_only_if_wanted() {
    let base = base_url("http://a/").unwrap();
    let elsewhere = card(&[("https://b/rpc", "JSONRPC", "1.0")]);
    let follow = ClientOptions { follow_card_url: true, ..ClientOptions::default() };
    assert_eq!(choose(&elsewhere, &base, &follow).unwrap().endpoint.as_str(), "https://b/rpc");
}
