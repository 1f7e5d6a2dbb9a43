use serde_json::{Value, json};

use super::*;

/// The rules but the first two, which are always there: names, and HTTPS anywhere with the further ports.
fn rules(fill: impl FnOnce(&mut Egress)) -> (Vec<u64>, Value) {
    let mut egress = Egress::new("team");
    fill(&mut egress);
    let rules = serde_json::to_value(egress.rules()).unwrap();
    let list = rules.as_array().unwrap();
    assert_eq!(list[0]["ports"][0]["port"], 53);
    let anywhere = list[1]["ports"].as_array().unwrap();
    (anywhere.iter().map(|port| port["port"].as_u64().unwrap()).collect(), Value::from(list[2..].to_vec()))
}

#[test]
fn a_url_opens_what_a_policy_can_see_of_it() {
    let namespace = |name: &str| json!([{ "to": [{ "namespaceSelector": { "matchLabels": { NAMESPACE_LABEL: name } } }] }]);
    let block = |cidr: &str, port: u16| json!([{ "to": [{ "ipBlock": { "cidr": cidr } }], "ports": [{ "port": port, "protocol": "TCP" }] }]);
    let cases = [
        ("https://api.example.com/v1", vec![443], json!([])),
        ("http://api.example.com:8080", vec![443, 8080], json!([])),
        ("http://intranet.example", vec![80, 443], json!([])),
        ("http://rag:9446", vec![443], namespace("team")),
        ("http://argocd-server.argocd.svc", vec![443], namespace("argocd")),
        ("http://argocd-server.argocd.svc.cluster.local.:80", vec![443], namespace("argocd")),
        ("http://10.1.2.3:9446/mcp", vec![443], block("10.1.2.3/32", 9446)),
        ("http://[fd00::1]:9446/mcp", vec![443], block("fd00::1/128", 9446)),
        ("http://127.0.0.1:8105/mcp", vec![443], json!([])),
        ("http://localhost:8105/mcp", vec![443], json!([])),
        ("${GATEWAY}/mcp", vec![443], json!([])),
        ("eu-west-1", vec![443], json!([])),
    ];
    for (url, anywhere, others) in cases {
        assert_eq!(rules(|egress| egress.url(url)), (anywhere, others), "{url}");
    }
}

#[test]
fn link_local_addresses_stay_closed() {
    let rules = serde_json::to_value(Egress::new("team").rules()).unwrap();
    assert_eq!(rules[1]["to"][0]["ipBlock"]["except"], json!(["169.254.0.0/16"]));
}
