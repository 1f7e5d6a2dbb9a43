//! Requests and the objects in them.

use std::fmt;

use serde_json::{Value, json};

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) body: Value,
    /// Whether the body names the newest version.
    pub(crate) current: bool,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, path, query, content_type, body, .. } = self;
        write!(f, "{method} {path}?{query} ({content_type}) {body}")
    }
}

impl Ask {
    fn new(method: &str, path: &str, body: Value) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: String::new(),
            content_type: "application/json".to_owned(),
            accept: "application/json".to_owned(),
            body,
            current: false,
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path, Value::Null)
    }

    pub(crate) fn post(path: &str, body: Value) -> Self {
        Self::new("POST", path, body).with("fieldManager=maker")
    }

    pub(crate) fn put(path: &str, body: Value) -> Self {
        Self::new("PUT", path, body).with("fieldManager=writer")
    }

    pub(crate) fn delete(path: &str) -> Self {
        Self::new("DELETE", path, Value::Null)
    }

    pub(crate) fn patch(path: &str, kind: &str, body: Value) -> Self {
        let content_type = format!("application/{kind}");
        Self { content_type, ..Self::new("PATCH", path, body) }.with("fieldManager=patcher")
    }

    pub(crate) fn apply(path: &str, manager: &str, force: bool, body: Value) -> Self {
        let query = format!("fieldManager={manager}&force={force}");
        Self { query, ..Self::patch(path, "apply-patch+yaml", body) }
    }

    pub(crate) fn with(self, query: &str) -> Self {
        Self { query: query.to_owned(), ..self }
    }

    /// Asks for the metadata of objects only.
    pub(crate) fn metadata_only(self) -> Self {
        let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1".to_owned();
        Self { accept, ..self }
    }

    pub(crate) fn based_on_newest(self) -> Self {
        Self { current: true, ..self }
    }
}

/// The custom kind: defaults, lists of every type, rules.
pub(crate) fn definition() -> Value {
    let parts = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"], "maxItems": 5,
        "items": {
            "type": "object", "required": ["id"],
            "properties": { "id": { "type": "string" }, "size": { "type": "integer", "default": 1 } },
        },
    });
    let spec = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "maxLength": 8, "minLength": 1, "pattern": "^[a-z]*$" },
            "count": { "type": "integer", "minimum": 1, "maximum": 9, "default": 3 },
            "mode": { "type": "string", "enum": ["A", "B"] },
            "tags": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
            "parts": parts,
            "plain": { "type": "array", "items": { "type": "string" } },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            "either": { "x-kubernetes-int-or-string": true },
        },
        "x-kubernetes-validations": [
            { "rule": "!has(self.name) || self.name != 'bad'", "message": "not that name" },
            { "rule": "!has(oldSelf.mode) || has(self.mode)", "message": "a mode stays" },
        ],
    });
    let status = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = json!({ "type": "object", "properties": { "spec": spec, "status": status } });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": schema },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": { "kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing" },
        },
    })
}

pub(crate) const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";

pub(crate) fn thing(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": name }, "spec": spec })
}

pub(crate) fn map(name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
}

pub(crate) fn deployment(name: &str, replicas: Option<i64>, containers: Value) -> Value {
    let mut spec = json!({
        "selector": { "matchLabels": { "app": "a" } },
        "template": { "metadata": { "labels": { "app": "a" } }, "spec": { "containers": containers } },
    });
    if let Some(replicas) = replicas {
        spec["replicas"] = replicas.into();
    }
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name }, "spec": spec })
}

pub(crate) fn service(name: &str, ports: Value) -> Value {
    let spec = json!({ "selector": { "app": "a" }, "ports": ports });
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name }, "spec": spec })
}
