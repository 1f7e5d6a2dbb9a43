//! Pods: those that the tests need themselves, and what is done to others.

use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Live;
use crate::cluster::namespace::TestNamespace;
use crate::cluster::objects::PODS;
use crate::supervisor::until;

/// A pod of this container that meets the level *restricted*.
pub fn restricted(container: &Value) -> Value {
    json!({"automountServiceAccountToken": false, "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
        "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"}}})
}

/// A container of such a pod, which can write to `/tmp` alone.
pub fn container(name: &str, image: &str) -> Value {
    json!({"name": name, "image": image, "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]}}})
}

pub fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The labels of the pods of a remote agent.
pub fn of_agent<'a>(supervisor: &'a str, agent: &'a str) -> [(&'a str, &'a str); 3] {
    let component = ("app.kubernetes.io/component", "agent");
    [("app.kubernetes.io/instance", supervisor), component, ("caipe.io/agent", agent)]
}

impl Live {
    /// A Deployment of one such pod, and its Service.
    pub fn serve(&self, name: &str, port: u16, pod: &Value) -> Result<()> {
        let labels = json!({"app": name});
        self.apply(
            &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}}),
        )?;
        self.apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {
            "selector": labels, "ports": [{"port": port}]}}))?;
        Ok(())
    }

    /// Kills a pod, as the loss of its node does: its programs end at once, and it is gone.
    pub async fn kill_pod(&self, pod: &Value) -> Result<()> {
        // One that is only just begun has no process yet.
        if let Some(node) = self.node.as_ref().filter(|_| pod["status"]["phase"] == "Running") {
            node.crash(pod)?;
        }
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        Ok(self.in_namespace(namespace).kill(PODS, name_of(pod)).await?)
    }

    /// Deletes a pod as people do: it gets its time to end.
    pub async fn delete_pod(&self, pod: &Value) -> Result<()> {
        Ok(self.delete(PODS, name_of(pod)).await?)
    }

    /// Waits until none of these pods is there and another one with these labels is ready.
    pub async fn until_replaced(&self, old: &[Value], labels: &[(&str, &str)]) -> Result<()> {
        let replaced = async || {
            let Ok(pods) = self.list(PODS).await else { return Ok(false) };
            let is_old = |pod: &Value| old.iter().any(|old| old["metadata"]["uid"] == pod["metadata"]["uid"]);
            let has = |pod: &Value, (name, value): &(&str, &str)| pod["metadata"]["labels"][*name] == *value;
            let is_new = |pod: &Value| labels.iter().all(|label| has(pod, label)) && is_ready(pod);
            Ok(!pods.iter().any(is_old) && pods.iter().any(is_new))
        };
        until("other pods are there", replaced).await
    }
}

/// Whether a pod takes requests.
pub fn is_ready(pod: &Value) -> bool {
    crate::cluster::objects::condition(pod, "Ready").starts_with("True")
}

/// Waits until every container of the namespace has been running for longer than `age`.
pub async fn until_older(space: &TestNamespace, age: Duration) -> Result<()> {
    until("the containers are old enough", async || {
        let limit = Timestamp::now() - age;
        let pods = space.pods(&[]).await?;
        let mut containers =
            pods.iter().filter_map(|pod| pod["status"]["containerStatuses"].as_array()).flatten();
        Ok(containers.all(|container| {
            let started = container["state"]["running"]["startedAt"].as_str();
            started.and_then(|time| time.parse::<Timestamp>().ok()).is_some_and(|time| time < limit)
        }))
    })
    .await
}

/// How often the containers of some pods were started again, by pod and container.
pub async fn restarts(space: &TestNamespace, labels: &[(&str, &str)]) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for pod in space.pods(labels).await? {
        let status = &pod["status"];
        let all = ["initContainerStatuses", "containerStatuses"].map(|key| status[key].as_array());
        for container in all.into_iter().flatten().flatten() {
            let name = container["name"].as_str().unwrap_or_default();
            lines.push(format!("{} {name} {}", name_of(&pod), container["restartCount"]));
        }
    }
    lines.sort();
    Ok(lines)
}
