//! Namespaces that the operator may not read.

use std::time::Duration;

use caipe_fixtures::apiserver::{Call, Failure, Fault};
use serde_json::{Value, json};

use super::kstatus::{condition, is_current, message};
use super::resources::{agent, container, everything, secret, supervisor};
use super::test_cluster::{NAMESPACE, Operator, TestCluster};

/// Refuses to show a kind in the namespace.
fn refuse(operator: &Operator, resource: &'static str) {
    operator.access.suffer(move |call| {
        let is_refused = call.namespace.as_deref() == Some(NAMESPACE) && call.resource == resource;
        let why = format!("{resource} is forbidden: User \"operator\" cannot list it");
        is_refused.then(|| Fault::Refuse(Failure::new(403, "Forbidden", why)))
    });
}

/// Whether the operator reports that it can read everything in the namespace.
fn is_synced(operator: &Operator, namespace: &str) -> bool {
    let line = format!("caipe_operator_namespace_synced{{watched_namespace=\"{namespace}\"}} 1");
    operator.metrics.encode().unwrap().lines().any(|found| found == line)
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_namespace_stops_no_other_and_is_reported() {
    for refused in ["secrets", "pods", "deployments"] {
        let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
        cluster.settle().await;
        let before = cluster.pod_uids();
        operator.stop().await;
        cluster.server.namespace("other");
        let mut llm = secret("llm", "OPENAI_API_KEY", "x");
        llm["metadata"]["namespace"] = json!("other");
        cluster.apply(&llm);
        let mut resource = supervisor("second", &small());
        resource["metadata"]["namespace"] = json!("other");
        cluster.apply(&resource);

        let namespaces = [NAMESPACE, "other"].map(str::to_owned);
        let operator = Operator::watching(&cluster, &namespaces, |_| None);
        refuse(&operator, refused);
        tokio::time::sleep(Duration::from_secs(30)).await;
        let second = cluster.server.get("caipesupervisors.caipe.io", "other", "second").unwrap();
        assert!(is_current(&second), "{refused}: {second:#}");
        assert_eq!(operator.health.missing(), Vec::<&str>::new(), "{refused}");
        assert_eq!((is_synced(&operator, NAMESPACE), is_synced(&operator, "other")), (false, true));
        let found = cluster.supervisor("platform").unwrap();
        assert_eq!(condition(&found, "Stalled")["reason"], "NamespaceUnreadable", "{found:#}");
        assert_eq!(condition(&found, "Ready")["status"], "False", "{found:#}");
        let kind = match refused {
            "secrets" => "Secret",
            "pods" => "Pod",
            _ => "Deployment",
        };
        assert!(message(&found, "Stalled").contains(&format!("namespace team: {kind};")), "{found:#}");
        assert!(before.is_subset(&cluster.pod_uids()), "what runs keeps running");

        operator.access.heal();
        cluster.until("platform", is_current).await;
        cluster.settle().await;
        assert!(is_synced(&operator, NAMESPACE));
        assert!(before.is_subset(&cluster.pod_uids()));
        operator.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_becomes_unreadable_is_reported_and_recovers() {
    let cluster = TestCluster::with_secrets();
    let operator = Operator::watching(&cluster, &[NAMESPACE.to_owned()], |_| None);
    cluster.apply(&supervisor("platform", &everything(&["argocd"])));
    cluster.until("platform", is_current).await;
    // Rights that are lost do not end a watch, which the API server ends after some minutes.
    refuse(&operator, "services");
    let unreadable = |found: &Value| condition(found, "Stalled")["reason"] == "NamespaceUnreadable";
    cluster.until("platform", unreadable).await;
    assert_eq!(operator.health.missing(), ["caches"], "it can do nothing");
    operator.access.heal();
    cluster.until("platform", is_current).await;
    // The supervisors themselves.
    refuse(&operator, "caipesupervisors");
    tokio::time::sleep(Duration::from_mins(15)).await;
    assert!(!is_synced(&operator, NAMESPACE));
    operator.access.heal();
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(is_synced(&operator, NAMESPACE));
    operator.stop().await;
}

/// An operator with the role of an older chart lacks the right to `PodDisruptionBudget`s.
#[tokio::test(start_paused = true)]
async fn refused_disruption_budgets_restrict_only_supervisors_with_several_pods() {
    let cluster = TestCluster::with_secrets();
    cluster.apply(&secret("redis", "REDIS_URL", "redis://redis.example.com"));
    let operator = Operator::start_with(&cluster, None, refuse_budgets);
    cluster.apply(&supervisor("single", &small()));
    cluster.apply(&supervisor("double", &replicated(2)));
    for name in ["single", "double"] {
        cluster.until(name, is_current).await;
    }
    cluster.settle().await;
    let restriction = |name: &str| message(&cluster.supervisor(name).unwrap(), "Degraded");
    let expected = "no PodDisruptionBudget is created or updated: the operator may not list and watch these kinds in all \
        namespaces: PodDisruptionBudget; grant its ServiceAccount the rights of the chart's role";
    assert_eq!((restriction("single").as_str(), restriction("double").as_str()), ("", expected));
    assert!(is_current(&cluster.supervisor("double").unwrap()));
    assert!(is_synced(&operator, "*"));
    assert_eq!(operator.health.missing(), Vec::<&str>::new());
    assert!(operator.writes().iter().all(|call| call.resource != "poddisruptionbudgets"));

    let has_budget = || cluster.server.get("poddisruptionbudgets.policy", NAMESPACE, "double").is_some();
    assert!(!has_budget());
    let is_unrestricted = |found: &Value| is_current(found) && condition(found, "Degraded").is_null();
    operator.access.heal();
    cluster.until("double", is_unrestricted).await;
    cluster.settle().await;
    assert!(has_budget());

    // The right is lost, which does not end the watch; the budget stays while the operator may not delete it.
    operator.access.suffer(refuse_budgets);
    cluster.until("double", |found| !condition(found, "Degraded").is_null()).await;
    cluster.apply(&supervisor("double", &replicated(1)));
    cluster.until("double", is_unrestricted).await;
    cluster.settle().await;
    assert!(has_budget() && is_unrestricted(&cluster.supervisor("double").unwrap()));
    operator.access.heal();
    cluster.settle().await;
    assert!(!has_budget());
    operator.stop().await;
}

/// Refuses every request for a `PodDisruptionBudget`, in all namespaces.
fn refuse_budgets(call: &Call) -> Option<Fault> {
    let why = "poddisruptionbudgets.policy is forbidden: User \"operator\" cannot use it";
    let is_refused = call.resource == "poddisruptionbudgets";
    is_refused.then(|| Fault::Refuse(Failure::new(403, "Forbidden", why.to_owned())))
}

/// A spec with one agent and this number of pods.
fn replicated(replicas: u32) -> Value {
    let mut spec = small();
    spec["replicas"] = json!(replicas);
    spec["store"] = json!({ "redis": { "secretRef": { "name": "redis" } } });
    spec
}

/// A spec with one agent.
fn small() -> Value {
    json!({
        "model": { "provider": "openai", "name": "gpt-5", "secretRef": { "name": "llm" } },
        "agents": [agent("runbooks", &container("Sidecar"))],
    })
}
