//! Lists compared: selectors, versions, pages and their order.

use anyhow::Result;
use serde_json::json;

use super::lives::{KINDS, Kind};
use super::requests::{Ask, MAPS};
use super::servers::compare;

#[tokio::test]
async fn lists_are_answered_alike() -> Result<()> {
    compare(async |pair| {
        for kind in KINDS {
            pair.ask_all(&objects(kind)).await?;
            pair.ask_all(&queries(kind)).await?;
            pair.ask_all(&pages(kind, &several(kind))).await?;
        }
        pair.ask_all(&unknown()).await
    })
    .await
}

/// Names of which the order of the parts differs from that of the whole.
const NAMESPACES: [&str; 2] = ["lists", "lists-1"];

/// Objects of a kind in these namespaces.
fn objects(kind: Kind) -> Vec<Ask> {
    let namespace = |name: &&str| {
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        Ask::post("/api/v1/namespaces", body)
    };
    let object = |namespace: &str, name: &str| {
        let team = if name.len().is_multiple_of(2) { "a" } else { "b" };
        kind.create(name, team).in_namespace(namespace)
    };
    let names = ["a", "a-b", "a.b", "ab"];
    let all = NAMESPACES.iter().flat_map(|namespace| names.map(|name| object(namespace, name)));
    NAMESPACES.iter().chain(&["lists.1", "Lists"]).map(namespace).chain(all).collect()
}

/// The list of several namespaces. The API server has `ConfigMaps` of its own, so for these it is the list of one namespace.
fn several(kind: Kind) -> String {
    let own = kind.list.replace("/default/", "/lists/");
    if kind.list == MAPS { own } else { kind.everywhere() }
}

fn queries(kind: Kind) -> Vec<Ask> {
    let queries = [
        "",
        "labelSelector=team%3Da",
        "labelSelector=team%21%3Da%2Cteam",
        "labelSelector=team+notin+%28a%29",
        "labelSelector=other",
        "labelSelector=team+%26+a",
        "labelSelector=a%3D%3Db%3Dc",
        "fieldSelector=metadata.name%3Da",
        "fieldSelector=metadata.namespace%21%3Dlists",
        "fieldSelector=spec.none%3D1",
        "fieldSelector=x",
        "resourceVersion=0",
        "resourceVersion=LISTED",
        "resourceVersion=LISTED&resourceVersionMatch=Exact",
        "resourceVersion=LISTED&resourceVersionMatch=NotOlderThan",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersion=abc",
        "resourceVersionMatch=Exact",
        "sendInitialEvents=true",
        "limit=0",
        "limit=-1",
        "limit=x",
    ];
    let list = |query: &&str| Ask::get(&several(kind)).with(query);
    let metadata = queries.iter().take(2).map(|query| list(query).metadata_only());
    queries.iter().map(list).chain(metadata).collect()
}

/// The pages of a list while objects are changed, which no page shows.
fn pages(kind: Kind, path: &str) -> Vec<Ask> {
    let first = Ask::get(path).with("limit=3");
    let next = || Ask::get(path).with("limit=3&continue=NEXT");
    let selected = |query: &str| Ask::get(path).with(&format!("limit=2&labelSelector=team%3Da{query}"));
    let create = kind.create("page", "a").in_namespace("lists");
    let change =
        kind.patch("page", json!({ "metadata": { "labels": { "team": "b" } } })).in_namespace("lists");
    vec![
        first,
        create,
        next(),
        change,
        next().metadata_only(),
        kind.delete("page").in_namespace("lists"),
        next(),
        selected(""),
        selected("&continue=NEXT"),
        selected("&continue=NEXT"),
    ]
}

fn unknown() -> Vec<Ask> {
    [
        "/apis/example.com/v1/namespaces/default/others",
        "/apis/example.com/v2/namespaces/default/things",
        "/apis/example.org/v1/namespaces/default/things",
        "/apis/apps/v1/namespaces/default/others",
        "/api/v1/namespaces/default/others/a",
        "/api/v1/namespaces/nowhere/configmaps",
        "/api/v1/namespaces/default/configmaps/a/other",
    ]
    .map(Ask::get)
    .to_vec()
}
