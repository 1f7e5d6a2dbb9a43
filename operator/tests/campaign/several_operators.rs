//! Two operators, a restarted operator, and edits of managed objects by others.

use std::time::Duration;

use caipe_operator::lease;
use serde_json::{Value, json};

use super::kstatus::{condition, is_current};
use super::oracle::Outcome;
use super::resources::{everything, supervisor};
use super::test_cluster::{NAMESPACE, Operator, TestCluster};

async fn reference(distributed: &[&str]) -> Outcome {
    let cluster = TestCluster::with_secrets();
    let _operator = cluster.operator();
    let since = cluster.server.revision();
    cluster.apply(&supervisor("platform", &everything(distributed)));
    cluster.settle().await;
    Outcome::of(&cluster.server, since)
}

#[tokio::test(start_paused = true)]
async fn of_two_operators_one_works_and_the_other_takes_over() {
    let wanted = reference(&["argocd"]).await;
    let cluster = TestCluster::with_secrets();
    let since = cluster.server.revision();
    let one = Operator::start(&cluster, Some("one"));
    let two = Operator::start(&cluster, Some("two"));
    cluster.apply(&supervisor("platform", &everything(&["argocd"])));
    cluster.until("platform", is_current).await;
    let wrote = [one.writes().len(), two.writes().len()];
    assert!(wrote.contains(&0), "both wrote: {wrote:?}");
    let (leader, follower) = if wrote[0] > 0 { (one, two) } else { (two, one) };
    leader.kill().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(wanted.differences(&Outcome::of(&cluster.server, since)), Vec::<String>::new());
    cluster.apply(&supervisor("platform", &everything(&[])));
    cluster.until("platform", is_current).await;
    assert!(!follower.writes().is_empty());
    follower.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_restarted_operator_waits_for_a_draining_instance() {
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    cluster.pods.keep_busy("argocd", 1);
    cluster.apply(&supervisor("platform", &everything(&[])));
    let deployment =
        |cluster: &TestCluster| cluster.server.get("deployments.apps", NAMESPACE, "platform-argocd");
    let drains = |found: Option<std::sync::Arc<Value>>| {
        found.is_some_and(|found| found["metadata"]["annotations"]["caipe.io/draining-since"].is_string())
    };
    let marked = async {
        while !drains(deployment(&cluster)) {
            cluster.server.moved(cluster.server.revision()).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(5), marked).await.expect("the old instance was not marked");
    let since = deployment(&cluster).unwrap()["metadata"]["annotations"]["caipe.io/draining-since"].clone();
    operator.kill().await;
    let operator = cluster.operator();
    tokio::time::sleep(Duration::from_mins(1)).await;
    let remaining = deployment(&cluster).expect("the old instance was removed though it worked");
    assert_eq!(remaining["metadata"]["annotations"]["caipe.io/draining-since"], since);
    cluster.pods.keep_busy("argocd", 0);
    cluster.settle().await;
    assert_eq!(deployment(&cluster), None, "the old instance was not removed though it was idle");
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changed_and_deleted_objects_are_repaired() {
    let wanted = reference(&["argocd"]).await;
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    meddle(&cluster);
    cluster.settle().await;
    assert_mended(&wanted, &cluster);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changes_while_no_operator_runs_are_repaired_by_the_next_one() {
    let wanted = reference(&["argocd"]).await;
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    cluster.settle().await;
    operator.stop().await;
    meddle(&cluster);
    let operator = cluster.operator();
    cluster.settle().await;
    assert_mended(&wanted, &cluster);
    operator.stop().await;
}

/// Edits: of a field in a list, of a map, of a list that is one value, of a label that others select by.
fn meddle(cluster: &TestCluster) {
    let edit = |resource: &str, name: &str, change: fn(&mut Value)| {
        cluster.server.edit(resource, NAMESPACE, name, change).unwrap();
    };
    edit("deployments.apps", "platform", |object| {
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("evil:1");
    });
    edit("deployments.apps", "platform-argocd", |object| {
        object["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["sleep"]);
    });
    edit("services", "platform", |object| object["spec"]["ports"][0]["name"] = json!("evil"));
    edit("networkpolicies.networking.k8s.io", "platform-argocd", |object| {
        object["spec"]["ingress"] = json!([{}]);
    });
    edit("serviceaccounts", "platform", |object| {
        object["automountServiceAccountToken"] = json!(true);
    });
    cluster.server.delete("networkpolicies.networking.k8s.io", NAMESPACE, "platform");
    cluster.server.delete("configmaps", NAMESPACE, "platform.spec");
}

fn assert_mended(wanted: &Outcome, cluster: &TestCluster) {
    let found = Outcome::of(&cluster.server, 0);
    for key in [
        "Deployment platform",
        "Deployment platform-argocd",
        "Service platform",
        "NetworkPolicy platform",
        "NetworkPolicy platform-argocd",
        "ServiceAccount platform",
        "ConfigMap platform.spec",
    ] {
        assert_eq!(spec_of(wanted, key), spec_of(&found, key), "{key}");
    }
}

fn spec_of(outcome: &Outcome, key: &str) -> Value {
    let object = &outcome.objects[key];
    json!([object["spec"], object["data"], object["automountServiceAccountToken"]])
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_restarts_in_its_pod_acts_within_five_seconds() {
    let cluster = TestCluster::with_secrets();
    let identity = || lease::identity("operator-0", Some("3f2a"));
    let leader = Operator::start(&cluster, Some(&identity()));
    let standby = Operator::start(&cluster, Some(&lease::identity("operator-1", Some("77d1"))));
    cluster.apply(&supervisor("platform", &everything(&["argocd"])));
    cluster.until("platform", is_current).await;
    assert!(!leader.writes().is_empty());
    leader.kill().await;
    // Meanwhile an agent is lost, and the spec of another resource is changed.
    cluster.pods.answer("argocd", false);
    cluster.apply(&supervisor("second", &everything(&[])));
    let begun = tokio::time::Instant::now();
    let again = Operator::start(&cluster, Some(&identity()));
    cluster.until("second", |found| found["status"]["observedGeneration"].is_i64()).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let lost = |found: &Value| condition(found, "AgentsConnected")["reason"] == "AgentsUnreachable";
    cluster.until("platform", lost).await;
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
    assert_eq!(standby.writes(), []);
    again.stop().await;
    standby.stop().await;
}
