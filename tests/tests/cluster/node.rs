//! The stand-in for a node, held to what a kubelet does.

use anyhow::Result;
use caipe_tests::cluster::objects::{CONFIG_MAPS, PODS, condition};
use caipe_tests::cluster::{self, Cluster};
use serde_json::{Value, json};

/// A pod of our program that answers `/health`, changed.
fn pod(name: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 5, "containers": [{
            "name": "main", "image": "caipe.test/caipe-supervisor:1",
            "args": ["serve", "--listen", "0.0.0.0:8000", "--allow-unauthenticated", "--data-dir", "/data"],
            "env": [{"name": "LLM_PROVIDER", "value": "openai"}, {"name": "OPENAI_MODEL_NAME", "value": "gpt-5"},
                {"name": "SINGLE_AGENT_MODE", "value": "true"}],
            "ports": [{"name": "a2a", "containerPort": 8000}],
            "readinessProbe": {"httpGet": {"path": "/health", "port": "a2a"}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "volumes": [{"name": "data", "emptyDir": {}}]}});
    change(&mut pod["spec"]);
    pod
}

async fn until_ready(cluster: &Cluster, name: &str) -> Result<Value> {
    cluster.until("the pod is ready", PODS, name, |pod| condition(pod, "Ready") == "True").await
}

#[test]
fn a_pod_waits_for_what_it_mounts_and_runs_until_it_is_deleted() -> Result<()> {
    cluster::with_pods(async |cluster| {
        let waits = pod("waits", |spec| {
            spec["volumes"] =
                json!([{"name": "data", "emptyDir": {}}, {"name": "texts", "configMap": {"name": "texts"}}]);
            spec["containers"][0]["volumeMounts"] =
                json!([{"name": "data", "mountPath": "/data"}, {"name": "texts", "mountPath": "/etc/texts"}]);
        });
        cluster.create(PODS, &waits, false).await?;
        let reason = |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"].clone();
        let missing = "configmap \"texts\" not found";
        cluster.until("it waits", PODS, "waits", |pod| reason(pod)["message"] == missing).await?;
        cluster
            .create(CONFIG_MAPS, &json!({"metadata": {"name": "texts"}, "data": {"a": "1"}}), false)
            .await?;
        let pod = until_ready(cluster, "waits").await?;
        assert!(pod["status"]["podIP"].as_str().is_some_and(|ip| ip.starts_with("10.244.")), "{pod}");
        cluster.delete(PODS, "waits").await?;
        cluster.until_gone(PODS, "waits").await
    })
}

#[test]
fn a_program_that_ends_is_started_again() -> Result<()> {
    cluster::with_pods(async |cluster| {
        let fails = pod("fails", |spec| spec["containers"][0]["args"] = json!(["no-such-command"]));
        cluster.create(PODS, &fails, false).await?;
        let restarts = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].as_i64() > Some(1);
        let pod = cluster.until("it was started again", PODS, "fails", restarts).await?;
        assert_eq!(pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"], 2);
        assert_eq!(condition(&pod, "Ready"), "False ContainersNotReady");
        Ok(())
    })
}

#[test]
fn an_image_that_is_not_there_is_never_pulled() -> Result<()> {
    cluster::with_pods(async |cluster| {
        let absent = pod("absent", |spec| spec["containers"][0]["image"] = "registry.example.com/a:1".into());
        cluster.create(PODS, &absent, false).await?;
        let reason = |pod: &Value| {
            pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImagePullBackOff"
        };
        let pod = cluster.until("it waits for its image", PODS, "absent", reason).await?;
        assert_eq!(pod["status"]["phase"], "Pending");
        Ok(())
    })
}
