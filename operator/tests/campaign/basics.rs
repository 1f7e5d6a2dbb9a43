//! What must hold when nothing goes wrong.

use std::time::Duration;

use caipe_fixtures::apiserver::{Failure, Fault, View};
use serde_json::{Value, json};

use super::kstatus::{self, Status, is_current};
use super::resources::{everything, secret, supervisor};
use super::test_cluster::{NAMESPACE, Operator, TestCluster};

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
    tokio::time::sleep(Duration::from_mins(25)).await;
    assert_eq!(operator.writes(), []);
    operator.stop().await;

    let again = cluster.operator();
    cluster.settle().await;
    assert_eq!(again.writes(), [], "a new operator wrote objects though nothing had changed");
    again.stop().await;
}

/// The value of a metric without labels, or with these.
fn metric(operator: &Operator, name: &str) -> i64 {
    let text = operator.metrics.encode().unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("caipe_operator_{name} ")));
    line.unwrap_or("0").parse().unwrap()
}

/// The resources that the metrics count.
fn counted(operator: &Operator) -> i64 {
    let phase = |phase| metric(operator, &format!("resources{{phase=\"{phase}\"}}"));
    ["Ready", "Reconciling", "Stalled"].into_iter().map(phase).sum()
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_has_a_queue() {
    let cluster = TestCluster::with_secrets();
    let leader = Operator::start(&cluster, Some("one"));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let standby = Operator::start(&cluster, Some("two"));
    tokio::time::sleep(Duration::from_secs(5)).await;
    // Every reconcile of the leader waits for an answer, and four may run at a time.
    leader.access.suffer(|call| (call.verb.writes() && call.resource != "leases").then_some(Fault::Hang));
    for number in 0..12 {
        cluster.apply(&supervisor(&format!("platform-{number}"), &everything(&[])));
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(metric(&leader, "reconciles_in_flight"), 4);
    assert_eq!(metric(&leader, "queue_length"), 8);
    leader.access.heal();
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(is_current(&cluster.supervisor("platform-11").unwrap()));
    assert_eq!((metric(&leader, "queue_length"), metric(&standby, "queue_length")), (0, 0));
    leader.stop().await;
    standby.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_concurrent_reconciles_is_one_for_all_namespaces() {
    let cluster = TestCluster::with_secrets();
    let namespaces = [NAMESPACE, "other"].map(str::to_owned);
    cluster.server.namespace("other");
    let operator = Operator::watching(&cluster, &namespaces, |call| {
        (call.verb.writes() && call.resource != "leases").then_some(Fault::Hang)
    });
    for namespace in &namespaces {
        for number in 0..6 {
            let mut resource = supervisor(&format!("platform-{number}"), &everything(&[]));
            resource["metadata"]["namespace"] = namespace.as_str().into();
            cluster.apply(&resource);
        }
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(metric(&operator, "reconciles_in_flight"), 4);
    assert_eq!(metric(&operator, "queue_length"), 8);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_deleted_while_no_watch_works_is_not_counted() {
    let (cluster, operator) = TestCluster::with_supervisor(&[]).await;
    assert_eq!(counted(&operator), 1);
    operator
        .access
        .suffer(|call| (call.resource == "caipesupervisors").then(|| Fault::Refuse(Failure::unavailable())));
    // The next event ends the watch.
    operator.access.see(|view| view.cut_after = Some(1));
    let label = |object: &mut Value| object["metadata"]["labels"] = json!({ "team": "platform" });
    cluster.server.edit("caipesupervisors.caipe.io", NAMESPACE, "platform", label).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    // The stand-in collects at once, and the operator, which sees the resource, would create the objects again.
    cluster.server.hold_garbage(true);
    cluster.server.delete("caipesupervisors.caipe.io", NAMESPACE, "platform");
    cluster.server.compact();
    operator.access.see(|view| *view = View::default());
    tokio::time::sleep(Duration::from_secs(5)).await;
    operator.access.heal();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(counted(&operator), 0);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_deleted_during_its_reconcile_is_not_counted() {
    let cluster = TestCluster::with_secrets();
    let server = cluster.server.clone();
    let operator = Operator::start_with(&cluster, None, move |call| {
        if call.subresource.as_deref() == Some("status") && call.resource == "caipesupervisors" {
            server.delete("caipesupervisors.caipe.io", NAMESPACE, "platform");
            return Some(Fault::LoseAnswer);
        }
        None
    });
    cluster.apply(&supervisor("platform", &everything(&[])));
    cluster.settle().await;
    assert_eq!(cluster.supervisor("platform"), None);
    assert_eq!(counted(&operator), 0);
    operator.stop().await;
}
