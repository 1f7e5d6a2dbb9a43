//! What must hold when nothing goes wrong.

use super::kstatus::{self, Status};
use super::resources::{everything, secret, supervisor};
use super::test_cluster::TestCluster;

#[tokio::test(start_paused = true)]
async fn a_resource_becomes_ready_and_a_second_reconcile_writes_nothing() {
    let cluster = TestCluster::new();
    let operator = cluster.operator();
    cluster.apply(&secret("llm", "OPENAI_API_KEY", "x"));
    cluster.apply(&secret("argocd", "ARGOCD_TOKEN", "x"));
    cluster.apply(&supervisor("platform", &everything(&["argocd"])));
    cluster.settle().await;
    let found = cluster.supervisor("platform").unwrap();
    assert_eq!(kstatus::compute(&found), Status::CurrentSpec, "{found:#}");
    operator.access.forget_calls();
    tokio::time::sleep(std::time::Duration::from_mins(25)).await;
    assert_eq!(operator.writes(), []);
    operator.stop().await;

    let again = cluster.operator();
    cluster.settle().await;
    assert_eq!(again.writes(), [], "a new operator wrote objects though nothing had changed");
    again.stop().await;
}
