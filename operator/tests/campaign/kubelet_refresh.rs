//! Kubelets that refresh too early and mount the old spec once more.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::kstatus::{self, Status, is_current};
use super::resources::{everything, supervisor};
use super::test_cluster::{Operator, TestCluster};

/// The epoch annotation of the supervisor's pod.
fn reported(cluster: &TestCluster) -> String {
    let pods = cluster.server.list("pods");
    let is_supervisor = |pod: &Value| {
        pod["metadata"]["labels"]["app.kubernetes.io/component"] == "supervisor"
            && pod["metadata"].get("deletionTimestamp").is_none()
    };
    let pod = pods.iter().find(|pod| is_supervisor(pod)).expect("no pod of the supervisor");
    pod["metadata"]["annotations"]["caipe.io/epoch"].as_str().unwrap_or_default().to_owned()
}

/// A supervisor at rest, and a change of its spec that rolls no pod and that kubelets sleep through so often.
async fn changed(times: u32) -> (TestCluster, Operator) {
    let (cluster, operator) = TestCluster::with_supervisor(&[]).await;
    cluster.settle().await;
    cluster.pods.wake_too_soon(times);
    let mut spec = everything(&[]);
    spec["limits"] = json!({ "recursion": 77 });
    cluster.apply(&supervisor("platform", &spec));
    (cluster, operator)
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_with_the_old_spec_is_annotated_again() {
    for (times, last, within) in [(0, "2", 2), (1, "2.2", 4), (3, "2.4", 10)] {
        let (cluster, operator) = changed(times).await;
        let begin = Instant::now();
        cluster.until("platform", is_current).await;
        assert!(begin.elapsed() < Duration::from_secs(within), "{times}: {:?}", begin.elapsed());
        assert_eq!(reported(&cluster), last, "{times}");
        operator.access.forget_calls();
        tokio::time::sleep(Duration::from_mins(5)).await;
        assert_eq!(operator.writes(), [], "a pod that runs the spec was annotated again");
        operator.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn annotations_stop_after_a_minute() {
    let (cluster, operator) = changed(u32::MAX).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(reported(&cluster), "2.6");
    operator.access.forget_calls();
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(operator.writes(), []);
    let found = cluster.supervisor("platform").unwrap();
    assert_eq!(kstatus::compute(&found), Status::InProgress, "{:#}", found["status"]);
    operator.stop().await;
}
