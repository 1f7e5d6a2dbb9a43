#![allow(clippy::needless_pass_by_value, reason = "values are written where they are used")]

use serde_json::{Value, json};

use super::pod::PartialPod;
use super::{PartialDeployment, Pod, Workload};

fn deployment(generation: i64, replicas: Value, status: Value) -> Workload {
    let object = json!({
        "metadata": {
            "generation": generation,
            "annotations": {
                "caipe.io/hosted-agents": "a,b", "caipe.io/template": "t", "caipe.io/store": "s",
            },
        },
        "spec": { "replicas": replicas, "strategy": { "type": "RollingUpdate" }, "selector": {}, "template": {} },
        "status": status,
    });
    let object: PartialDeployment = serde_json::from_value(object).unwrap();
    Workload::from(&object)
}

fn counts(observed: i64, all: i32, updated: i32, available: i32) -> Value {
    json!({ "observedGeneration": observed, "replicas": all, "updatedReplicas": updated, "availableReplicas": available })
}

#[test]
fn a_deployment_has_rolled_out_when_nothing_old_is_left() {
    let cases = [
        ("all there", 2, json!(2), counts(2, 2, 2, 2), true, true),
        ("the controller has not looked yet", 3, json!(2), counts(2, 2, 2, 2), false, false),
        ("an old pod is left", 2, json!(2), counts(2, 3, 2, 3), false, false),
        ("one is not available", 2, json!(2), counts(2, 2, 2, 1), false, true),
        ("one has not been created", 2, json!(2), counts(2, 1, 1, 1), false, true),
        ("none is available", 2, json!(2), counts(2, 2, 2, 0), false, false),
        ("one is of the old template", 2, json!(2), counts(2, 2, 1, 2), false, false),
        ("one replica is meant where none is said", 1, Value::Null, counts(1, 1, 1, 1), true, true),
        ("nobody has looked at all", 1, json!(1), json!({}), false, false),
        ("none are wanted", 1, json!(0), counts(1, 0, 0, 0), true, true),
    ];
    for (case, generation, replicas, status, rolled_out, is_current) in cases {
        let workload = deployment(generation, replicas, status);
        assert_eq!((workload.rolled_out, workload.is_current), (rolled_out, is_current), "{case}");
    }
}

#[test]
fn a_deployment_says_why_it_does_not_get_on() {
    let condition = |kind, status, message| json!({ "type": kind, "status": status, "message": message });
    let late = condition("Progressing", "False", "timed out progressing");
    let quota = condition("ReplicaFailure", "True", "exceeded quota");
    let fine = condition("Progressing", "True", "is progressing");
    let failure = |conditions: Value| deployment(1, json!(1), json!({ "conditions": conditions })).failure;
    assert_eq!(failure(json!([fine])), None);
    assert_eq!(failure(json!([late.clone()])).as_deref(), Some("timed out progressing"));
    assert_eq!(failure(json!([quota, late])).as_deref(), Some("exceeded quota"));
}

#[test]
fn a_deployment_has_its_hosted_agents_and_template() {
    let workload = deployment(1, json!(1), json!({}));
    assert_eq!(workload.hosted().into_iter().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(workload.template, Some("t".into()));
    assert_eq!((workload.store, workload.overlaps), (Some("s".into()), true));
}

fn pod(status: Value) -> Pod {
    let labels = json!({ "app.kubernetes.io/component": "agent", "caipe.io/agent": "argocd" });
    let object = json!({ "metadata": { "name": "x", "labels": labels }, "status": status });
    let object: PartialPod = serde_json::from_value(object).unwrap();
    Pod::from(&object)
}

fn container(state: Value, last: Value) -> Value {
    json!({ "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 3, "state": state, "lastState": last })
}

#[test]
fn a_pod_says_what_is_wrong_with_it() {
    let waiting = |reason, message| json!({ "waiting": { "reason": reason, "message": message } });
    let killed = json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } });
    let of =
        |container: Value| pod(json!({ "containerStatuses": [container] })).trouble.map(|it| it.to_string());
    let cases = [
        (container(waiting("ContainerCreating", ""), json!({})), None),
        (container(json!({ "running": {} }), json!({})), None),
        (
            container(waiting("ImagePullBackOff", "Back-off pulling image \"x\"\nand more"), json!({})),
            Some("container c: ImagePullBackOff (Back-off pulling image \"x\")"),
        ),
        (
            container(waiting("CrashLoopBackOff", "back-off 10s"), killed.clone()),
            Some("container c: CrashLoopBackOff (OOMKilled, exit code 137, 3 restarts)"),
        ),
        (
            container(json!({ "running": {} }), killed.clone()),
            Some("container c: OOMKilled (exit code 137, 3 restarts)"),
        ),
        (container(killed, json!({})), Some("container c: OOMKilled (exit code 137, 3 restarts)")),
        (container(json!({ "terminated": { "exitCode": 0, "reason": "Completed" } }), json!({})), None),
    ];
    for (container, expected) in cases {
        assert_eq!(of(container).as_deref(), expected);
    }
    let mut again = container(json!({ "running": {} }), json!({ "terminated": { "exitCode": 1 } }));
    again["ready"] = true.into();
    assert_eq!(of(again), None, "it is well again");
    let condition = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available" });
    let unscheduled = pod(json!({ "conditions": [condition] })).trouble.map(|it| it.to_string());
    assert_eq!(unscheduled.as_deref(), Some("Unschedulable (0/1 nodes are available)"));
}

#[test]
fn a_sidecar_counts_before_the_agent_that_waits_for_it() {
    let sidecar = container(json!({ "waiting": { "reason": "CrashLoopBackOff" } }), json!({}));
    let agent = container(json!({ "waiting": { "reason": "PodInitializing" } }), json!({}));
    let pod =
        pod(json!({ "podIP": "10.1.2.3", "initContainerStatuses": [sidecar], "containerStatuses": [agent] }));
    assert_eq!(pod.trouble.unwrap().reason, "CrashLoopBackOff");
    assert_eq!(pod.ip, Some("10.1.2.3".parse().unwrap()));
    assert_eq!((&*pod.component, pod.agent.as_deref(), pod.ready), ("agent", Some("argocd"), false));
}
