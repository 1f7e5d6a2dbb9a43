//! Resources that the campaigns use.

use serde_json::{Value, json};

use super::test_cluster::NAMESPACE;

/// A `CaipeSupervisor`.
pub(crate) fn supervisor(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "caipe.io/v1alpha1", "kind": "CaipeSupervisor",
        "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec,
    })
}

pub(crate) fn secret(name: &str, key: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": NAMESPACE },
        "stringData": { key: value },
    })
}

pub(crate) fn config_map(name: &str, key: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": NAMESPACE },
        "data": { key: value },
    })
}

/// An agent of one's own with a tool server.
pub(crate) fn agent(name: &str, server: &Value) -> Value {
    let identity = json!({ "inline": { "description": "Does things.", "systemPrompt": "Do things." } });
    let mut server = server.clone();
    server["name"] = "tools".into();
    json!({ "name": name, "identity": identity, "mcp": [server] })
}

/// A tool server in a container.
pub(crate) fn container(placement: &str) -> Value {
    json!({ "container": { "image": "tools:1", "port": 9000, "placement": placement } })
}

/// One of each: an agent of the catalogue, own agents with a sidecar and with a Service, an external agent.
pub(crate) fn everything(distributed: &[&str]) -> Value {
    json!({
        "model": { "provider": "openai", "name": "gpt-5", "secretRef": { "name": "llm" } },
        "distributedAgents": distributed,
        "agents": [
            { "name": "argocd", "secretRef": { "name": "argocd" } },
            agent("runbooks", &container("Sidecar")),
            agent("search", &container("Service")),
            { "name": "pipelines", "external": { "url": "https://agents.example.com/pipelines" } },
        ],
    })
}
