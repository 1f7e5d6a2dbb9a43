//! Errors of users and clusters, their report in the status, and the recovery.

use std::sync::Arc;
use std::time::Duration;

use caipe_fixtures::apiserver::{Failure, Fault};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::kstatus::{self, Status, condition, is_current, message};
use super::resources::{agent, container, everything, secret, supervisor};
use super::test_cluster::{NAMESPACE, Operator, TestCluster};

#[tokio::test(start_paused = true)]
async fn an_unknown_agent_name_causes_a_warning() {
    let (cluster, operator) = TestCluster::with_supervisor(&["nosuch"]).await;
    cluster.settle().await;
    let reported = cluster.notes("SpecWarning");
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("nosuch"), "{reported:?}");
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_template_that_is_refused_leaves_the_spec_as_it_was() {
    let (cluster, operator) = TestCluster::with_supervisor(&[]).await;
    cluster.settle().await;
    let spec = |cluster: &TestCluster| {
        cluster.server.get("configmaps", NAMESPACE, "platform.spec").unwrap()["data"].clone()
    };
    let before = spec(&cluster);
    let mut wanted = everything(&[]);
    wanted["limits"] = json!({ "recursion": 77 });
    wanted["podTemplate"] = json!({ "spec": { "nodeSelector": { "disk": "no label" } } });
    operator.access.suffer(|call| {
        let is_refused = call.resource == "deployments" && call.apply;
        is_refused.then(|| Fault::Refuse(Failure::new(422, "Invalid", "nodeSelector: Invalid value")))
    });
    cluster.apply(&supervisor("platform", &wanted));
    cluster.settle().await;
    let found = cluster.supervisor("platform").unwrap();
    assert_eq!(kstatus::compute(&found), Status::Failed, "{found:#}");
    assert_eq!(spec(&cluster), before);
    // One that only knows no dry run, as some webhooks, holds nobody up.
    operator.access.suffer(|call| {
        let is_question = call.resource == "deployments" && call.dry_run;
        is_question.then(|| Fault::Refuse(Failure::bad_request("the webhook does not support dry run")))
    });
    cluster.until("platform", is_current).await;
    assert_ne!(spec(&cluster), before);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_keeps_failing_is_reported() {
    let cluster = TestCluster::with_secrets();
    let operator = cluster.operator();
    operator.access.suffer(|call| {
        let fails = call.resource == "deployments" && call.apply;
        fails.then(|| Fault::Refuse(Failure::new(500, "InternalError", "no quantity")))
    });
    cluster.apply(&supervisor("platform", &everything(&[])));
    cluster.settle().await;
    let found = cluster.supervisor("platform").unwrap();
    assert_eq!(kstatus::compute(&found), Status::InProgress, "{found:#}");
    assert_eq!(condition(&found, "Reconciling")["reason"], "Retrying", "{found:#}");
    assert!(message(&found, "Ready").ends_with("no quantity"), "{}", message(&found, "Ready"));
    assert_eq!(cluster.notes("ApplyFailed").len(), 1);
    operator.access.heal();
    cluster.until("platform", is_current).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_image_that_never_pulls_is_reported_until_it_is_replaced() {
    let cluster = TestCluster::with_secrets();
    let operator = cluster.operator();
    cluster.controllers.conduct(|conduct| {
        conduct.never_pulled.insert("never".to_owned());
    });
    let mut spec = everything(&[]);
    spec["image"] = json!("never:1");
    cluster.apply(&supervisor("platform", &spec));
    let stalled = |found: &Value| {
        kstatus::compute(found) == Status::Failed && message(found, "Stalled").contains("ImagePullBackOff")
    };
    cluster.until("platform", stalled).await;
    spec["image"] = json!("fine:1");
    cluster.apply(&supervisor("platform", &spec));
    cluster.until("platform", is_current).await;
    operator.stop().await;
}

/// The reported pod failures with their counts.
fn failing(cluster: &TestCluster) -> Vec<(String, i64)> {
    let events = cluster.server.list("events.events.k8s.io").into_iter();
    let reported = |event: Arc<Value>| {
        (event["note"].as_str().unwrap().to_owned(), event["series"]["count"].as_i64().unwrap_or(1))
    };
    events.filter(|event| event["reason"] == "PodFailing").map(reported).collect()
}

#[tokio::test(start_paused = true)]
async fn a_tool_server_that_ends_is_reported_each_time() {
    let cluster = TestCluster::with_secrets();
    let operator = cluster.operator();
    let mut spec = everything(&[]);
    spec["agents"][2]["mcp"][0]["container"]["image"] = json!("search:1");
    cluster.apply(&supervisor("platform", &spec));
    cluster.until("platform", is_current).await;
    for times in 1..=3 {
        cluster.controllers.conduct(|conduct| {
            conduct.crashing.insert("search".to_owned());
        });
        cluster.settle().await;
        let why = "tool server tools of agent search: container tool-server: CrashLoopBackOff (Error, exit code 1, 1 restarts)";
        assert_eq!(failing(&cluster), [(why.to_owned(), times)]);
        cluster.controllers.conduct(|conduct| conduct.crashing.clear());
        cluster.until("platform", is_current).await;
        cluster.settle().await;
    }
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_migration_to_a_broken_pod_changes_nothing() {
    let (cluster, operator) = TestCluster::with_supervisor(&[]).await;
    let epoch = cluster.supervisor("platform").unwrap()["status"]["epoch"].clone();
    cluster.controllers.conduct(|conduct| {
        conduct.crashing.insert("never".to_owned());
    });
    let mut spec = everything(&["runbooks"]);
    spec["agents"][1]["mcp"][0]["container"]["image"] = json!("never:1");
    // The tool server beside it breaks, and with it the new instance; the old one keeps its own.
    cluster.apply(&supervisor("platform", &spec));
    cluster.settle().await;
    let found = cluster.supervisor("platform").unwrap();
    let runbooks =
        found["status"]["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "runbooks");
    assert_eq!(runbooks.unwrap()["placement"], "InProcess", "{found:#}");
    cluster.apply(&supervisor("platform", &everything(&[])));
    cluster.until("platform", is_current).await;
    assert!(cluster.supervisor("platform").unwrap()["status"]["epoch"].as_i64() >= epoch.as_i64());
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_exceeded_quota_is_reported_until_it_is_raised() {
    let cluster = TestCluster::with_secrets();
    let operator = cluster.operator();
    cluster.server.quota(NAMESPACE, "services", Some(0));
    cluster.apply(&supervisor("platform", &everything(&[])));
    let reported = |found: &Value| found["status"].to_string().contains("exceeded quota");
    cluster.until("platform", reported).await;
    cluster.server.quota(NAMESPACE, "services", None);
    cluster.until("platform", is_current).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_in_deletion_is_left_alone() {
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    operator.access.forget_calls();
    cluster.server.delete("namespaces", "", NAMESPACE);
    cluster.settle().await;
    let refused = operator.access.calls().into_iter().filter(|call| call.code == Some(403)).count();
    assert!(
        refused <= 1,
        "{refused} calls were refused: the first one says that nothing can be made any more"
    );
    assert_eq!(cluster.server.get("namespaces", "", NAMESPACE), None);
    assert!(cluster.server.in_namespace(NAMESPACE).is_empty());
    operator.access.forget_calls();
    tokio::time::sleep(std::time::Duration::from_mins(10)).await;
    assert_eq!(operator.writes(), []);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn names_at_their_limits_make_objects_that_the_api_takes() {
    let cluster = TestCluster::new();
    let operator = cluster.operator();
    cluster.apply(&secret("llm", "OPENAI_API_KEY", "x"));
    let (name, agent_name) = ("s".repeat(30), "a".repeat(32));
    let mut remote = agent(&agent_name, &container("Service"));
    remote["mcp"][0]["name"] = json!("t".repeat(32));
    let spec = json!({
        "model": { "provider": "openai", "name": "gpt-5", "secretRef": { "name": "llm" } },
        "distributedAgents": ["all"], "agents": [remote],
    });
    cluster.apply(&supervisor(&name, &spec));
    cluster.until(&name, is_current).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn as_many_agents_as_a_resource_may_have_become_ready() {
    let cluster = TestCluster::new();
    let operator = cluster.operator();
    cluster.apply(&secret("llm", "OPENAI_API_KEY", "x"));
    let http = json!({ "http": { "url": "http://tools:9000/mcp" } });
    let agents: Vec<Value> = (0..128).map(|number| agent(&format!("a{number}"), &http)).collect();
    let spec = json!({
        "model": { "provider": "openai", "name": "gpt-5", "secretRef": { "name": "llm" } },
        "distributedAgents": ["a1", "a2"], "agents": agents,
    });
    cluster.apply(&supervisor("many", &spec));
    let found = cluster.until("many", is_current).await;
    assert_eq!(found["status"]["agentsReady"], "128/128");
    let mut more = spec;
    more["agents"].as_array_mut().unwrap().push(agent("one-more", &http));
    let refused = cluster.server.apply("kubectl", &supervisor("many", &more)).unwrap_err();
    assert_eq!(refused.code, 422);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_agent_and_its_return_are_reported() {
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    cluster.pods.answer("argocd", false);
    let lost = |found: &Value| condition(found, "AgentsConnected")["reason"] == "AgentsUnreachable";
    cluster.until("platform", lost).await;
    cluster.pods.answer("argocd", true);
    cluster.until("platform", is_current).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_key_is_reported_and_a_deleted_secret_is_created_again() {
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    let pods = || cluster.pod_uids();
    let before = pods();
    let take_out = |secret: &mut Value| {
        secret["data"].as_object_mut().unwrap().remove("CAIPE_AGENT_KEY");
    };
    cluster.server.edit("secrets", NAMESPACE, "platform.keys", take_out).unwrap();
    let reported = |found: &Value| message(found, "Stalled").contains("platform.keys lacks CAIPE_AGENT_KEY");
    cluster.until("platform", reported).await;
    assert_eq!(pods(), before, "what runs keeps running");
    cluster.server.delete("secrets", NAMESPACE, "platform.keys");
    cluster.until("platform", is_current).await;
    cluster.settle().await;
    assert!(pods().is_disjoint(&before), "a pod still has the keys that are gone");
    assert_eq!(agent_key(&cluster), derived_key(&cluster), "the agent's key derives from the new keys");
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_key_of_other_keys_is_reported_and_a_deleted_one_is_created_again() {
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    assert_eq!(agent_key(&cluster), derived_key(&cluster));
    let change = |secret: &mut Value| secret["data"]["CAIPE_AGENT_KEY"] = "b3RoZXI=".into();
    cluster.server.edit("secrets", NAMESPACE, "platform.keys", change).unwrap();
    let message_of = |found: &Value| message(found, "Stalled");
    let reported =
        |found: &Value| message_of(found).contains("platform-argocd.agent-key was made for other keys");
    cluster.until("platform", reported).await;
    for derived in ["platform-argocd.agent-key", "platform-argocd.tools-key"] {
        cluster.server.delete("secrets", NAMESPACE, derived);
    }
    cluster.until("platform", is_current).await;
    assert_eq!(agent_key(&cluster), derived_key(&cluster));
    operator.stop().await;
}

/// The key in the Secret of the agent.
fn agent_key(cluster: &TestCluster) -> String {
    key(cluster, "platform-argocd.agent-key", "A2A_AUTH_SHARED_KEY")
}

/// The key that the supervisor derives for the agent.
fn derived_key(cluster: &TestCluster) -> String {
    caipe_crds::agent_key::derive(&key(cluster, "platform.keys", "CAIPE_AGENT_KEY"), "argocd")
}

pub(super) fn key(cluster: &TestCluster, secret: &str, key: &str) -> String {
    let secret = cluster.server.get("secrets", NAMESPACE, secret).unwrap();
    let ByteString(text) = serde_json::from_value(secret["data"][key].clone()).unwrap();
    String::from_utf8(text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_of_an_earlier_resource_are_waited_for() {
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    cluster.server.hold_garbage(true);
    cluster.server.delete("caipesupervisors.caipe.io", NAMESPACE, "platform");
    cluster.apply(&supervisor("platform", &everything(&[])));
    let waits = |found: &Value| condition(found, "Reconciling")["reason"] == "Collecting";
    let found = cluster.until("platform", waits).await;
    assert_eq!(kstatus::compute(&found), Status::InProgress, "{found:#}");
    assert_eq!(condition(&found, "Ready")["status"], "False");
    cluster.server.hold_garbage(false);
    cluster.until("platform", is_current).await;
    operator.stop().await;
}

/// Waits until the operator says so of the definition.
async fn definition_is(operator: &Operator, missing: bool) {
    let line = format!("caipe_operator_crd_missing {}", u8::from(missing));
    let reported = async {
        while !operator.metrics.encode().unwrap().lines().any(|found| found == line) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let noticed = tokio::time::timeout(Duration::from_mins(5), reported).await;
    assert!(noticed.is_ok(), "missing: {missing}; {}", operator.metrics.encode().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_and_restored_definition_is_noticed() {
    let (cluster, operator) = TestCluster::with_supervisor(&[]).await;
    let (kind, name) = ("customresourcedefinitions.apiextensions.k8s.io", "caipesupervisors.caipe.io");
    let definition = cluster.server.get(kind, "", name).unwrap();
    definition_is(&operator, false).await;
    cluster.server.delete("caipesupervisors.caipe.io", NAMESPACE, "platform");
    cluster.server.delete(kind, "", name);
    definition_is(&operator, true).await;
    cluster
        .server
        .put(json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": name }, "spec": definition["spec"] }))
        .unwrap();
    cluster.apply(&supervisor("platform", &everything(&[])));
    cluster.until("platform", is_current).await;
    definition_is(&operator, false).await;
    operator.stop().await;
}

/// Changes the definition as a newer release does, which knows a provider that this operator does not.
fn upgrade_definition(cluster: &TestCluster) {
    let (kind, name) = ("customresourcedefinitions.apiextensions.k8s.io", "caipesupervisors.caipe.io");
    let mut definition = cluster.server.get(kind, "", name).unwrap().as_ref().clone();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    schema["properties"]["model"] = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    schema.as_object_mut().unwrap().remove("x-kubernetes-validations");
    cluster
        .server
        .apply(
            "kubectl",
            &json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": { "name": name }, "spec": definition["spec"],
            }),
        )
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_this_operator_cannot_parse_is_stalled_until_it_is_corrected() {
    let (cluster, operator) = TestCluster::with_supervisor(&["argocd"]).await;
    let before = cluster.pod_uids();
    upgrade_definition(&cluster);
    let mut spec = everything(&["argocd"]);
    spec["model"] = json!({ "provider": "newest", "name": "m1" });
    cluster.apply(&supervisor("platform", &spec));
    let stalled = |found: &Value| kstatus::compute(found) == Status::Failed;
    let found = cluster.until("platform", stalled).await;
    assert_eq!(found["status"]["observedGeneration"], found["metadata"]["generation"]);
    for kind in ["Stalled", "Ready"] {
        assert_eq!(condition(&found, kind)["reason"], "InvalidSpec", "{found:#}");
        assert!(message(&found, kind).starts_with("spec.model"), "{}", message(&found, kind));
    }
    assert_eq!(found["status"]["agentsReady"], "4/4", "what runs keeps running");
    cluster.settle().await;
    assert_eq!(cluster.pod_uids(), before);
    assert_eq!(cluster.notes("InvalidSpec").len(), 1);
    cluster.apply(&supervisor("platform", &everything(&["argocd"])));
    cluster.until("platform", is_current).await;
    operator.stop().await;
}
