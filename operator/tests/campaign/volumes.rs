//! The volume of conversations over the life of its resource.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kstatus::{is_current, message};
use super::resources::{everything, supervisor};
use super::test_cluster::{NAMESPACE, TestCluster};

const CLAIM: &str = "platform.data";

/// A supervisor without agents, with this `store.sqlite`.
fn platform(sqlite: &Value) -> Value {
    let model = json!({ "provider": "openai", "name": "gpt-5", "secretRef": { "name": "llm" } });
    supervisor("platform", &json!({ "model": model, "agents": [], "store": { "sqlite": sqlite } }))
}

fn claim(cluster: &TestCluster) -> Option<Arc<Value>> {
    cluster.server.get("persistentvolumeclaims", NAMESPACE, CLAIM)
}

fn uid(cluster: &TestCluster) -> Option<String> {
    claim(cluster).map(|claim| claim["metadata"]["uid"].to_string())
}

fn owners(cluster: &TestCluster) -> usize {
    claim(cluster).unwrap()["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len)
}

/// The claim that the supervisor's pods mount.
fn mounted(cluster: &TestCluster) -> String {
    let deployment = cluster.server.get("deployments.apps", NAMESPACE, "platform").unwrap();
    let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array().unwrap().clone();
    let claims = volumes.iter().filter_map(|it| it["persistentVolumeClaim"]["claimName"].as_str());
    claims.map(str::to_owned).collect()
}

async fn apply(cluster: &TestCluster, sqlite: Value) {
    cluster.apply(&platform(&sqlite));
    cluster.settle().await;
    let found = cluster.supervisor("platform").unwrap();
    assert!(is_current(&found), "{sqlite}: {found:#}");
}

#[tokio::test(start_paused = true)]
async fn a_retained_claim_is_adopted_by_the_next_resource_of_the_name() {
    for (policy, stays) in [(None, true), (Some("Retain"), true), (Some("Delete"), false)] {
        let cluster = TestCluster::with_secrets();
        let operator = cluster.operator();
        let sqlite = policy.map_or(json!({}), |policy| json!({ "reclaimPolicy": policy }));
        apply(&cluster, sqlite.clone()).await;
        let before = uid(&cluster).unwrap();
        cluster.server.delete("caipesupervisors.caipe.io", NAMESPACE, "platform");
        cluster.settle().await;
        assert_eq!(uid(&cluster), stays.then(|| before.clone()), "{policy:?}");
        apply(&cluster, sqlite).await;
        assert_eq!(uid(&cluster).unwrap() == before, stays, "{policy:?}");
        operator.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_policy_of_a_living_resource_changes_the_owner_of_its_claim() {
    let cluster = TestCluster::with_secrets();
    let mut operator = cluster.operator();
    let mut first = None;
    for (policy, count) in [("Delete", 1), ("Retain", 0), ("Delete", 1), ("Retain", 0)] {
        apply(&cluster, json!({ "reclaimPolicy": policy })).await;
        assert_eq!(owners(&cluster), count, "{policy}");
        let before = first.get_or_insert_with(|| uid(&cluster)).clone();
        assert_eq!(uid(&cluster), before, "{policy}");
        operator.stop().await;
        operator = cluster.operator();
        cluster.settle().await;
        assert_eq!(operator.writes(), [], "{policy}: a new operator wrote though nothing had changed");
    }
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_grows_and_does_not_shrink() {
    let cluster = TestCluster::with_secrets();
    let operator = cluster.operator();
    apply(&cluster, json!({})).await;
    apply(&cluster, json!({ "size": "3Gi" })).await;
    let size = || claim(&cluster).unwrap()["spec"]["resources"]["requests"]["storage"].clone();
    assert_eq!(size(), "3Gi");
    let refused = cluster.server.apply("kubectl", &platform(&json!({ "size": "2Gi" }))).unwrap_err();
    let refused = format!("{refused:?}");
    assert!(refused.contains("can grow, but not shrink"), "{refused}");

    // The next resource of the name does not know the size of the retained claim.
    cluster.server.delete("caipesupervisors.caipe.io", NAMESPACE, "platform");
    cluster.settle().await;
    cluster.apply(&platform(&json!({})));
    cluster.settle().await;
    let reported = message(&cluster.supervisor("platform").unwrap(), "Stalled");
    assert!(reported.contains("PersistentVolumeClaim platform.data"), "{reported}");
    assert!(reported.contains("can not be less than status.capacity"), "{reported}");
    assert_eq!(size(), "3Gi");
    apply(&cluster, json!({ "size": "3Gi" })).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_claim_of_a_stranger_is_reported_and_can_be_mounted() {
    let cluster = TestCluster::with_secrets();
    let operator = cluster.operator();
    let foreign = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": CLAIM, "namespace": NAMESPACE },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "9Gi" } } },
    });
    cluster.apply(&foreign);
    cluster.settle().await;
    let before = claim(&cluster);
    cluster.apply(&platform(&json!({})));
    cluster.settle().await;
    let reported = message(&cluster.supervisor("platform").unwrap(), "Stalled");
    assert!(reported.contains("PersistentVolumeClaim platform.data is there already"), "{reported}");
    assert!(reported.contains("set spec.store.sqlite.existingClaim"), "{reported}");
    assert_eq!(claim(&cluster), before, "it is unchanged");

    apply(&cluster, json!({ "existingClaim": CLAIM })).await;
    assert_eq!(mounted(&cluster), CLAIM);
    cluster.server.delete("caipesupervisors.caipe.io", NAMESPACE, "platform");
    cluster.settle().await;
    assert_eq!(claim(&cluster), before, "it is unchanged");
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_moves_to_a_claim_of_the_user_leaves_its_own() {
    for policy in ["Retain", "Delete"] {
        let cluster = TestCluster::with_secrets();
        let operator = cluster.operator();
        apply(&cluster, json!({ "reclaimPolicy": policy })).await;
        let before = claim(&cluster);
        apply(&cluster, json!({ "existingClaim": "own" })).await;
        assert_eq!(mounted(&cluster), "own");
        tokio::time::sleep(std::time::Duration::from_hours(1)).await;
        assert_eq!(claim(&cluster), before, "{policy}");
        apply(&cluster, json!({ "reclaimPolicy": policy })).await;
        assert_eq!((mounted(&cluster).as_str(), claim(&cluster)), (CLAIM, before), "{policy}");
        cluster.server.delete("caipesupervisors.caipe.io", NAMESPACE, "platform");
        cluster.settle().await;
        assert_eq!(claim(&cluster).is_some(), policy == "Retain", "{policy}");
        operator.stop().await;
    }
}

/// The files of an agent stay when it leaves the resource, and are there when it comes back.
#[tokio::test(start_paused = true)]
async fn the_volume_of_an_agent_stays_when_the_agent_is_removed() {
    let (cluster, operator) = TestCluster::with_supervisor(&[]).await;
    let claim = || cluster.server.get("persistentvolumeclaims", NAMESPACE, "platform-writer.data");
    let writer =
        json!({ "name": "writer", "placement": "Remote", "workspace": { "volume": { "size": "5Gi" } } });
    let mut spec = everything(&[]);
    let agents = spec["agents"].as_array().cloned().unwrap();
    let with: Vec<Value> = agents.iter().cloned().chain([writer]).collect();
    let mut first = None;
    for agents in [json!(with), json!(agents), json!(with)] {
        spec["agents"] = agents;
        cluster.apply(&supervisor("platform", &spec));
        cluster.settle().await;
        let found = cluster.supervisor("platform").unwrap();
        assert!(is_current(&found), "{found:#}");
        let uid = claim().unwrap()["metadata"]["uid"].to_string();
        assert_eq!(*first.get_or_insert_with(|| uid.clone()), uid);
        assert_eq!(claim().unwrap()["spec"]["resources"]["requests"]["storage"], "5Gi");
    }
    operator.stop().await;
}
