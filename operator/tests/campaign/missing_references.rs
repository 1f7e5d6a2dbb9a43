//! Secrets and `ConfigMap`s that do not exist yet.

use std::time::Duration;

use serde_json::json;

use super::kstatus::{self, Status, condition, is_current, message};
use super::resources::{config_map, everything, secret, supervisor};
use super::test_cluster::{NAMESPACE, TestCluster};

#[tokio::test(start_paused = true)]
async fn a_missing_secret_is_named_and_one_that_comes_later_is_taken_up() {
    let cluster = TestCluster::new();
    let operator = cluster.operator();
    cluster.apply(&secret("llm", "OPENAI_API_KEY", "x"));
    cluster.apply(&supervisor("platform", &everything(&["argocd"])));
    cluster.settle().await;
    let found = cluster.supervisor("platform").unwrap();
    assert_ne!(kstatus::compute(&found), Status::CurrentSpec);
    assert_eq!(condition(&found, "Ready")["reason"], "ReferenceMissing", "{found:#}");
    assert!(message(&found, "Ready").contains("argocd"), "{}", message(&found, "Ready"));
    cluster.apply(&secret("argocd", "ARGOCD_TOKEN", "x"));
    cluster.until("platform", is_current).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_config_map_is_named_and_one_that_comes_later_is_taken_up() {
    let cluster = TestCluster::with_secrets();
    let operator = cluster.operator();
    let mut spec = everything(&[]);
    spec["agents"][1]["identity"] = json!({ "configMapRef": { "name": "runbooks-identity" } });
    cluster.apply(&supervisor("platform", &spec));
    cluster.settle().await;
    let found = cluster.supervisor("platform").unwrap();
    assert_eq!(kstatus::compute(&found), Status::InProgress, "{found:#}");
    assert_eq!(condition(&found, "Ready")["reason"], "ReferenceMissing", "{found:#}");
    assert_eq!(
        message(&found, "Ready"),
        "missing ConfigMaps: runbooks-identity; create them, or correct the names"
    );
    let mut identity = config_map("runbooks-identity", "systemPrompt", "Read the runbooks.");
    identity["data"]["description"] = json!("Knows the runbooks.");
    cluster.apply(&identity);
    cluster.until("platform", is_current).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unneeded_references_are_not_required() {
    let cluster = TestCluster::with_secrets();
    let operator = cluster.operator();
    let mut spec = everything(&[]);
    let idle = json!({ "name": "jira", "enabled": false, "secretRef": { "name": "nowhere" } });
    spec["agents"].as_array_mut().unwrap().push(idle);
    let maybe = json!({ "secretRef": { "name": "maybe", "optional": true } });
    spec["podTemplate"] = json!({ "spec": { "containers": [{ "name": "supervisor", "envFrom": [maybe] }] } });
    cluster.apply(&supervisor("platform", &spec));
    cluster.until("platform", is_current).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_config_map_of_a_template_is_required() {
    let cluster = TestCluster::with_secrets();
    let operator = cluster.operator();
    let mut spec = everything(&[]);
    let needed = json!({ "configMapRef": { "name": "settings" } });
    spec["podTemplate"] =
        json!({ "spec": { "containers": [{ "name": "supervisor", "envFrom": [needed] }] } });
    cluster.apply(&supervisor("platform", &spec));
    cluster.settle().await;
    let found = cluster.supervisor("platform").unwrap();
    assert_eq!(message(&found, "Ready"), "missing ConfigMaps: settings; create them, or correct the names");
    cluster.apply(&config_map("settings", "LEVEL", "high"));
    cluster.until("platform", is_current).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_is_still_missing_is_not_reported_as_found() {
    let cluster = TestCluster::with_secrets();
    let operator = cluster.operator();
    let mut spec = everything(&[]);
    spec["agents"][0]["secretRef"]["name"] = json!("nowhere");
    cluster.apply(&supervisor("platform", &spec));
    cluster.settle().await;
    spec["resources"] = json!({ "requests": { "memory": "100Mi" } });
    cluster.apply(&supervisor("platform", &spec));
    cluster.settle().await;
    assert_eq!(cluster.notes("ReferenceFound"), Vec::<String>::new());
    assert_eq!(cluster.notes("ReferenceMissing").len(), 1);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_comes_soon_after_the_resource_causes_no_event() {
    let cluster = TestCluster::with_secrets();
    let operator = cluster.operator();
    let mut spec = everything(&[]);
    spec["agents"][1]["identity"] = json!({ "configMapRef": { "name": "runbooks-identity" } });
    cluster.apply(&supervisor("platform", &spec));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(condition(&cluster.supervisor("platform").unwrap(), "Ready")["reason"], "ReferenceMissing");
    let mut identity = config_map("runbooks-identity", "systemPrompt", "Read the runbooks.");
    identity["data"]["description"] = json!("Knows the runbooks.");
    cluster.apply(&identity);
    cluster.until("platform", is_current).await;
    cluster.settle().await;
    let reported = ["ReferenceMissing", "ReferenceFound"].map(|reason| cluster.notes(reason).len());
    assert_eq!(reported, [0, 0]);
    // A lasting absence is reported without another change, and so is the return.
    cluster.server.delete("secrets", NAMESPACE, "llm");
    cluster.settle().await;
    assert_eq!(cluster.notes("ReferenceMissing").len(), 1);
    cluster.apply(&secret("llm", "OPENAI_API_KEY", "x"));
    cluster.until("platform", is_current).await;
    cluster.settle().await;
    assert_eq!(cluster.notes("ReferenceFound").len(), 1);
    operator.stop().await;
}
