//! The annotation that pauses a resource.

use serde_json::Value;

use super::kstatus::{condition, is_current};
use super::resources::{everything, supervisor};
use super::test_cluster::{NAMESPACE, TestCluster};

#[tokio::test(start_paused = true)]
async fn a_paused_resource_is_measured_and_not_changed() {
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    cluster.settle().await;
    let pause = |value: &str| {
        let value = value.to_owned();
        let annotate =
            move |found: &mut Value| found["metadata"]["annotations"]["caipe.io/paused"] = value.into();
        cluster.server.edit("caipesupervisors.caipe.io", NAMESPACE, "platform", annotate).unwrap();
    };
    pause("true");
    cluster.until("platform", |found| condition(found, "Reconciling")["reason"] == "Paused").await;
    let before = operator.writes().len();
    cluster.apply(&supervisor("platform", &everything(&[])));
    cluster.server.delete("services", NAMESPACE, "platform");
    cluster.settle().await;
    let writes = operator.writes().into_iter().skip(before);
    let applied: Vec<_> = writes.filter(|call| call.resource != "caipesupervisors").collect();
    assert!(applied.is_empty(), "{applied:?}");
    let found = cluster.supervisor("platform").unwrap();
    assert_eq!(condition(&found, "Ready")["status"], "True", "{found:#}");
    cluster.pods.answer("argocd", false);
    cluster.until("platform", |found| condition(found, "AgentsConnected")["status"] == "False").await;
    cluster.pods.answer("argocd", true);
    pause("false");
    cluster.until("platform", is_current).await;
    assert!(cluster.server.get("services", NAMESPACE, "platform").is_some());
    operator.stop().await;
}
