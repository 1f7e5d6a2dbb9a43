//! Network policies that are disabled and enabled while everything runs.

use serde_json::json;

use super::kstatus::is_current;
use super::resources::{everything, supervisor};
use super::test_cluster::{NAMESPACE, TestCluster};

fn policies(cluster: &TestCluster) -> Vec<String> {
    let objects = cluster.server.in_namespace(NAMESPACE).into_iter().map(|(_, object)| object);
    let policies = objects.filter(|object| object["kind"] == "NetworkPolicy");
    policies.map(|policy| policy["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn disabled_policies_are_removed_and_no_pod_restarts() {
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd", "search"]).await;
    cluster.settle().await;
    let (before, pods) = (policies(&cluster), cluster.server.in_namespace(NAMESPACE).len());
    assert_eq!(before.len(), 5, "the supervisor, two agents, two tool servers: {before:?}");
    let mut spec = everything(&["argocd", "search"]);
    for (mode, count) in [("Disabled", 0), ("Managed", 5)] {
        spec["networkPolicy"] = json!({ "mode": mode });
        operator.access.forget_calls();
        cluster.apply(&supervisor("platform", &spec));
        cluster.settle().await;
        assert!(is_current(&cluster.supervisor("platform").unwrap()), "{mode}");
        assert_eq!(policies(&cluster).len(), count, "{mode}");
        let others = operator.writes().into_iter().filter(|call| call.resource == "deployments").count();
        assert_eq!(others, 0, "{mode}: a Deployment was written");
    }
    assert_eq!((policies(&cluster), cluster.server.in_namespace(NAMESPACE).len()), (before, pods));
    operator.stop().await;
}
