//! When pods are replaced: for changed data, and a few supervisors at a time after a change of the operator.

use std::collections::BTreeSet;

use caipe_operator::defaults::{Defaults, RolloutLimits};
use serde_json::{Value, json};

use super::kstatus::{condition, is_current};
use super::resources::{everything, secret, supervisor};
use super::test_cluster::{NAMESPACE, Operator, TestCluster};

const SUPERVISORS: usize = 6;

fn name(number: usize) -> String {
    format!("platform-{number}")
}

/// Supervisors that an operator with the image `old:1` has rolled out.
async fn fleet() -> TestCluster {
    let cluster = TestCluster::with_secrets();
    let operator = operator(&cluster, "old:1", RolloutLimits::default());
    for number in 0..SUPERVISORS {
        cluster.apply(&supervisor(&name(number), &everything(&["argocd"])));
    }
    for number in 0..SUPERVISORS {
        cluster.until(&name(number), is_current).await;
    }
    operator.stop().await;
    cluster
}

fn operator(cluster: &TestCluster, image: &str, rollouts: RolloutLimits) -> Operator {
    let defaults = Defaults { image: image.to_owned(), rollouts, ..Defaults::default() };
    Operator::start_configured(cluster, None, &[], defaults, |_| None)
}

/// The supervisors with a Deployment of this image.
fn with_image(objects: &[std::sync::Arc<Value>], image: &str) -> BTreeSet<String> {
    let has_image = |object: &&std::sync::Arc<Value>| {
        object["spec"]["template"]["spec"]["containers"][0]["image"].as_str() == Some(image)
    };
    let owner =
        |object: &std::sync::Arc<Value>| object["metadata"]["labels"]["app.kubernetes.io/instance"].clone();
    objects.iter().filter(has_image).map(owner).map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn deployments(cluster: &TestCluster) -> Vec<std::sync::Arc<Value>> {
    cluster.server.list("deployments.apps")
}

/// The supervisors with a Deployment that has not rolled out to this image. A changed annotation alone increases the generation
/// of other Deployments too, and rolls no pod.
fn rolling(cluster: &TestCluster, image: &str) -> BTreeSet<String> {
    let is_rolling = |object: &std::sync::Arc<Value>| {
        let (spec, status) = (&object["spec"], &object["status"]);
        let is_new = spec["template"].to_string().contains(image);
        (is_new && status["observedGeneration"] != object["metadata"]["generation"])
            || status["updatedReplicas"] != spec["replicas"]
            || status["availableReplicas"] != spec["replicas"]
    };
    let owner =
        |object: std::sync::Arc<Value>| object["metadata"]["labels"]["app.kubernetes.io/instance"].clone();
    let found = deployments(cluster).into_iter().filter(is_rolling).map(owner);
    found.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_new_version_of_the_operator_restarts_a_few_supervisors_at_a_time() {
    let cluster = fleet().await;
    cluster.controllers.conduct(|conduct| {
        conduct.slow.insert("new".to_owned(), std::time::Duration::from_secs(20));
    });
    let limits = RolloutLimits { max_concurrent: 2, ..RolloutLimits::default() };
    let operator = operator(&cluster, "new:2", limits);
    let (mut most, mut waited) = (0, false);
    while with_image(&deployments(&cluster), "old:1").len() + rolling(&cluster, "new:2").len() > 0 {
        let revision = cluster.server.revision();
        most = most.max(rolling(&cluster, "new:2").len());
        for number in 0..SUPERVISORS {
            let found = cluster.supervisor(&name(number)).unwrap();
            if condition(&found, "Reconciling")["reason"] == "RolloutPending" {
                waited = true;
                assert_eq!(condition(&found, "Ready")["status"], "True", "{found:#}");
            }
        }
        tokio::time::timeout(std::time::Duration::from_mins(10), cluster.server.moved(revision))
            .await
            .unwrap();
    }
    assert_eq!((most, waited), (2, true));
    for number in 0..SUPERVISORS {
        cluster.until(&name(number), is_current).await;
    }
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_does_not_start_stops_at_the_first_supervisor() {
    let cluster = fleet().await;
    cluster.controllers.conduct(|conduct| {
        conduct.never_pulled.insert("broken".to_owned());
    });
    let limits = RolloutLimits { max_concurrent: 1, ..RolloutLimits::default() };
    let operator = operator(&cluster, "broken:2", limits.clone());
    cluster.settle().await;
    assert_eq!(with_image(&deployments(&cluster), "broken:2").len(), 1);
    let waiting = |number: &usize| {
        let found = cluster.supervisor(&name(*number)).unwrap();
        condition(&found, "Reconciling")["reason"] == "RolloutPending"
    };
    assert_eq!((0..SUPERVISORS).filter(waiting).count(), SUPERVISORS - 1);
    // A change of a resource is not held back, and a version that works continues.
    let chosen = (0..SUPERVISORS).find(waiting).unwrap();
    let spec = json!({ "image": "own:1", "agents": [] });
    cluster.apply(&supervisor(&name(chosen), &spec));
    cluster.until(&name(chosen), is_current).await;
    operator.stop().await;
    let operator = self::operator(&cluster, "good:3", limits);
    for number in 0..SUPERVISORS {
        cluster.until(&name(number), is_current).await;
    }
    assert_eq!(with_image(&deployments(&cluster), "good:3").len(), SUPERVISORS - 1);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_label_on_a_secret_rolls_no_pod_and_new_data_does() {
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    let pods = || {
        let uid = |pod: std::sync::Arc<Value>| pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        cluster.server.list("pods").into_iter().map(uid).collect::<BTreeSet<_>>()
    };
    cluster.settle().await;
    let before = pods();
    let label = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "argocd", "namespace": NAMESPACE, "labels": { "team": "platform" } },
    });
    cluster.server.apply("labeler", &label).unwrap();
    cluster.settle().await;
    assert_eq!(pods(), before, "for a label");
    cluster.apply(&secret("argocd", "ARGOCD_TOKEN", "y"));
    cluster.settle().await;
    assert_ne!(pods(), before, "for new data");
    operator.stop().await;
}
